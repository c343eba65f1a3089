// 3 × 3 convolution with channels last by Winograd's minimal filtering, for what is multiplied in f32 and in
// 16 bits. Included once per SIMD target.
#ifndef HEADRACE_KERNELS_WINOGRAD_LAYOUT
#define HEADRACE_KERNELS_WINOGRAD_LAYOUT

#include <cstddef>
#include <vector>

namespace headrace::kernels {

// A tile of the output is 2 × 2 pixels and reads 4 × 4. Filters and what they read are transformed so that 16
// products, each a matrix product over channels, take the place of a window's 9.
inline constexpr size_t kProducts = 16, kSide = 4;

// The products' matrices for w [3][3][in_channels][out_channels], one after the other: pack(i, matrix) gets
// the i-th, [in_channels][out_channels]. in_channels are those of a group.
template <class Pack>
void transform_filters(const float* w, size_t in_channels, size_t out_channels, Pack pack) {
    // G g Gᵀ.
    constexpr double kFilter[kSide][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
    const size_t pairs = in_channels * out_channels;
    std::vector<float> product(pairs);
    for (size_t i = 0; i < kProducts; ++i) {
        const auto& rows = kFilter[i / kSide];
        const auto& columns = kFilter[i % kSide];
        for (size_t pair = 0; pair < pairs; ++pair) {
            double sum = 0;
            for (size_t y = 0; y < 3; ++y)
                for (size_t x = 0; x < 3; ++x) sum += rows[y] * columns[x] * w[(y * 3 + x) * pairs + pair];
            product[pair] = static_cast<float>(sum);
        }
        pack(i, product.data());
    }
}

// Packs each group's 16 products behind those of the group before: pack(matrix, to) gets one,
// [in_channels][out_channels / groups] in rows of out_channels, and writes `size` elements.
template <class T, class Pack>
void pack_filters_of_groups(const float* w, size_t in_channels, size_t out_channels, size_t groups,
                            size_t size, T* packed, Pack pack) {
    transform_filters(w, in_channels, out_channels, [&](size_t i, const float* product) {
        for (size_t group = 0; group < groups; ++group)
            pack(product + group * (out_channels / groups), packed + (group * kProducts + i) * size);
    });
}

}  // namespace headrace::kernels
#endif

#if defined(HEADRACE_KERNELS_NHWC_WINOGRAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_KERNELS_NHWC_WINOGRAD_INL_H_
#undef HEADRACE_KERNELS_NHWC_WINOGRAD_INL_H_
#else
#define HEADRACE_KERNELS_NHWC_WINOGRAD_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "kernels/conv/nhwc_epilogue-inl.h"
#include "kernels/gemm/gemm_epilogue-inl.h"
#include "kernels/gemm/gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

// Tiles that share the filters while these are in the cache; what they read stays in the L2 cache.
inline constexpr size_t kStripTiles = 48, kStripBytes = 32768;

// Neighbouring products lie apart by a line more than the tiles take, or all would share lines of the L1
// cache.
inline constexpr size_t kGap = 16;

// The multiplied tiles, as they are.
struct PlainTiles {
    using B = PlainColumns;
    using Input = float;
    // Rows of a panel of filters, and elements of a tile's transformed pixels.
    static size_t depth(size_t channels) { return channels; }
    static size_t width(size_t channels) { return channels; }
    static HWY_INLINE void store(TileVec v, float* to) { hn::StoreU(v, TileTag(), to); }
    static HWY_INLINE void store_channels(TileVec v, float* to, size_t count) {
        store_first(v, TileTag(), to, count);
    }
    static double weight(const float* panel, size_t width, size_t channel, size_t out) {
        return panel[channel * width + out];
    }
};

// Tiles of all images.
inline size_t winograd_tiles(const Conv2dArgs& g) {
    return g.batch * ((g.out_h + 1) / 2) * ((g.out_w + 1) / 2);
}

template <class Tiles>
struct WinogradScratch {
    std::vector<typename Tiles::Input> inputs;  // [product][tile][width]
    std::vector<float> sums;                    // [product][tile][kPanelWidth]
    std::vector<float> zeros;                   // channels that a group reads
    std::vector<char> is_exact;                 // of each tile; false: it met NaN or infinity
};

// Bᵀ d of four values.
template <class V>
HWY_INLINE void transform_input(V (&d)[kSide]) {
    const V first = hn::Sub(d[0], d[2]), second = hn::Add(d[1], d[2]);
    const V third = hn::Sub(d[2], d[1]), fourth = hn::Sub(d[1], d[3]);
    d[0] = first, d[1] = second, d[2] = third, d[3] = fourth;
}

// Computes one group's channels. Tiles: PlainTiles, or another form of what is multiplied.
template <class Tiles>
class WinogradConvolution {
public:
    using Input = typename Tiles::Input;
    using Element = typename Tiles::B::Element;
    using Left = typename Tiles::B::Left;

    WinogradConvolution(const Conv2dArgs& g, size_t group, const Element* packed,
                        WinogradScratch<Tiles>& scratch)
        : g_(g),
          in_channels_(g.in_channels / g.groups),
          out_channels_(g.out_channels / g.groups),
          first_in_(group * in_channels_),
          first_out_(group * out_channels_),
          depth_(Tiles::depth(in_channels_)),
          width_(Tiles::width(in_channels_)),
          product_size_(packed_width(out_channels_) * depth_),
          filters_(packed + group * kProducts * product_size_),
          tile_rows_((g.out_h + 1) / 2),
          tile_columns_((g.out_w + 1) / 2),
          scratch_(scratch) {
        strip_ = std::clamp<size_t>(kStripBytes / sizeof(Input) / width_, 6, kStripTiles);
        input_step_ = strip_ * width_ + kGap, sums_step_ = strip_ * kPanelWidth + kGap;
        grow(scratch.inputs, kProducts * input_step_);
        grow(scratch.sums, kProducts * sums_step_);
        grow(scratch.zeros, in_channels_);
        scratch.is_exact.resize(std::max(scratch.is_exact.size(), strip_));
    }
    // Tiles [first, last) of all images.
    void run(size_t first, size_t last) {
        const size_t strips = divide_up(last - first, strip_);
        for (size_t i = 0; i < strips; ++i)
            run_strip(first + i * (last - first) / strips, first + (i + 1) * (last - first) / strips);
    }

private:
    struct Tile {
        size_t image, row, column;  // of the output's first pixel
    };
    template <class T>
    static void grow(std::vector<T>& v, size_t size) {
        if (v.size() < size) v.resize(size);
    }
    Tile tile(size_t i) const {
        const size_t column = i % tile_columns_, row = i / tile_columns_;
        return {row / tile_rows_, row % tile_rows_ * 2, column * 2};
    }

    void run_strip(size_t first, size_t last) {
        for (size_t i = first; i < last; ++i) read_tile(tile(i), i - first);
        std::fill_n(scratch_.is_exact.begin(), last - first, 1);
        for (size_t out = 0; out < out_channels_; out += kPanelWidth) {
            const size_t channels = std::min(kPanelWidth, out_channels_ - out);
            multiply(last - first, out, channels);
            for (size_t i = first; i < last; ++i) write_tile(tile(i), i - first, first_out_ + out, channels);
        }
        for (size_t i = first; i < last; ++i)
            if (!scratch_.is_exact[i - first]) repeat_tile(tile(i));
    }

    // Where pixel (y, x) of the 4 × 4 that a tile reads lies; zeros outside of the image.
    const float* source(const Tile& t, size_t y, size_t x) const {
        const ptrdiff_t row = static_cast<ptrdiff_t>(t.row + y) - g_.pad_top;
        const ptrdiff_t column = static_cast<ptrdiff_t>(t.column + x) - g_.pad_left;
        if (row < 0 || column < 0 || row >= static_cast<ptrdiff_t>(g_.in_h) ||
            column >= static_cast<ptrdiff_t>(g_.in_w))
            return nullptr;
        return g_.x +
               ((t.image * g_.in_h + static_cast<size_t>(row)) * g_.in_w + static_cast<size_t>(column)) *
                   g_.in_channels +
               first_in_;
    }

    void read_tile(const Tile& t, size_t at) {
        const TileTag d;
        const float* from[kProducts];
        for (size_t i = 0; i < kProducts; ++i) {
            from[i] = source(t, i / kSide, i % kSide);
            if (!from[i]) from[i] = scratch_.zeros.data();
        }
        Input* to = scratch_.inputs.data() + at * width_;
        size_t c = 0;
        for (; c + kLanes <= in_channels_; c += kLanes)
            read_channels([&](size_t i) HWY_ATTR { return hn::LoadU(d, from[i] + c); },
                          [&](TileVec v, size_t i) HWY_ATTR { Tiles::store(v, to + i * input_step_ + c); });
        if (const size_t rest = in_channels_ - c)
            read_channels([&](size_t i) HWY_ATTR { return load_first(d, from[i] + c, rest); },
                          [&](TileVec v, size_t i)
                              HWY_ATTR { Tiles::store_channels(v, to + i * input_step_ + c, rest); });
    }
    template <class Load, class Store>
    static HWY_INLINE void read_channels(Load load, Store store) {
        TileVec columns[kSide][kSide];  // [column][row]
        HWY_UNROLL(4)
        for (size_t x = 0; x < kSide; ++x) {
            HWY_UNROLL(4)
            for (size_t y = 0; y < kSide; ++y) columns[x][y] = load(y * kSide + x);
            transform_input(columns[x]);
        }
        HWY_UNROLL(4)
        for (size_t y = 0; y < kSide; ++y) {
            TileVec row[kSide] = {columns[0][y], columns[1][y], columns[2][y], columns[3][y]};
            transform_input(row);
            HWY_UNROLL(4)
            for (size_t x = 0; x < kSide; ++x) store(row[x], y * kSide + x);
        }
    }

    void multiply(size_t tiles, size_t out, size_t channels) {
        const size_t width = std::min(kPanelWidth, packed_width(channels));
        for (size_t i = 0; i < kProducts; ++i) {
            BasicPanelJob<typename Tiles::B> job{};
            job.rows = tiles, job.cols = width, job.depth = depth_;
            job.a = reinterpret_cast<const Left*>(scratch_.inputs.data() + i * input_step_);
            job.lda = static_cast<ptrdiff_t>(width_ * sizeof(Input) / sizeof(Left));
            job.b = filters_ + i * product_size_ + out * depth_, job.ldb = static_cast<ptrdiff_t>(width);
            job.c = scratch_.sums.data() + i * sums_step_, job.ldc = kPanelWidth;
            job.init = kZeros, job.last = true;
            run_panel(job);
        }
    }

    // Output rows and columns of a tile that exist, and where a pixel's first channel of all lies.
    size_t rows(const Tile& t) const { return std::min<size_t>(2, g_.out_h - t.row); }
    size_t columns(const Tile& t) const { return std::min<size_t>(2, g_.out_w - t.column); }
    size_t place(const Tile& t, size_t y, size_t x) const {
        return ((t.image * g_.out_h + t.row + y) * g_.out_w + t.column + x) * g_.out_channels;
    }

    void write_tile(const Tile& t, size_t at, size_t out, size_t channels) {
        const TileTag d;
        const float* from = scratch_.sums.data() + at * kPanelWidth;
        TileVec unlike_zero = hn::Zero(d);
        for (size_t c = 0; c < channels; c += kLanes) {
            const size_t count = std::min(kLanes, channels - c);
            const auto load = [&](const float* p) HWY_ATTR {
                return count == kLanes ? hn::LoadU(d, p + out + c) : load_first(d, p + out + c, count);
            };
            TileVec y[2][2];
            sum_products([&](size_t i) HWY_ATTR { return hn::LoadU(d, from + i * sums_step_ + c); }, y);
            const TileVec bias = g_.bias ? load(g_.bias) : hn::Zero(d);
            for (size_t r = 0; r < rows(t); ++r)
                for (size_t x = 0; x < columns(t); ++x) {
                    const size_t to = place(t, r, x);
                    // 0 · y is 0, or NaN if y is no number; what y may become then is seen by repeat_tile().
                    unlike_zero = hn::MulAdd(y[r][x], hn::Zero(d), unlike_zero);
                    const TileVec v = NhwcEpilogue(g_, to).apply(hn::Add(y[r][x], bias), load);
                    if (count == kLanes)
                        hn::StoreU(v, d, g_.y + to + out + c);
                    else
                        store_first(v, d, g_.y + to + out + c, count);
                }
        }
        for (size_t r = 0; r < rows(t); ++r)
            NhwcEpilogue::finish_rest(g_, columns(t), channels, place(t, r, 0) + out);
        if (!hn::AllTrue(d, hn::Eq(unlike_zero, hn::Zero(d)))) scratch_.is_exact[at] = 0;
    }
    // Aᵀ m A.
    template <class Load>
    static HWY_INLINE void sum_products(Load load, TileVec (&y)[2][2]) {
        TileVec half[2][kSide];
        HWY_UNROLL(4)
        for (size_t x = 0; x < kSide; ++x) {
            const TileVec second = load(kSide + x), third = load(2 * kSide + x);
            half[0][x] = hn::Add(load(x), hn::Add(second, third));
            half[1][x] = hn::Sub(hn::Sub(second, third), load(3 * kSide + x));
        }
        HWY_UNROLL(2)
        for (size_t r = 0; r < 2; ++r) {
            y[r][0] = hn::Add(half[r][0], hn::Add(half[r][1], half[r][2]));
            y[r][1] = hn::Sub(hn::Sub(half[r][1], half[r][2]), half[r][3]);
        }
    }

    // A tile again, window by window: NaN and infinity reach all of a tile through the transformations.
    HWY_NOINLINE void repeat_tile(const Tile& t) {
        for (size_t r = 0; r < rows(t); ++r)
            for (size_t x = 0; x < columns(t); ++x) {
                const size_t to = place(t, r, x) + first_out_;
                for (size_t out = 0; out < out_channels_; ++out) g_.y[to + out] = window(t, r, x, out);
                finish({.activation = g_.activation,
                        .clamp_min = g_.clamp_min,
                        .clamp_max = g_.clamp_max,
                        .residual = g_.residual ? g_.residual + to : nullptr,
                        .residual_first = g_.residual_first,
                        .ldr = static_cast<ptrdiff_t>(g_.out_channels)},
                       1, out_channels_, g_.y + to, static_cast<ptrdiff_t>(g_.out_channels));
            }
    }
    float window(const Tile& t, size_t row, size_t column, size_t out) const {
        double sum = g_.bias ? g_.bias[first_out_ + out] : 0;
        for (size_t y = 0; y < 3; ++y)
            for (size_t x = 0; x < 3; ++x)
                if (const float* pixel = source(t, row + y, column + x))
                    for (size_t c = 0; c < in_channels_; ++c) sum += double(pixel[c]) * weight(y, x, c, out);
        return static_cast<float>(sum);
    }
    // A filter's element from the products': its middle is the difference of the second and the third.
    double weight(size_t y, size_t x, size_t c, size_t out) const {
        const auto column = [&](size_t row) {
            return x == 1 ? product(row, 1, c, out) - product(row, 2, c, out)
                          : product(row, x ? 3 : 0, c, out);
        };
        return y == 1 ? column(1) - column(2) : column(y ? 3 : 0);
    }
    double product(size_t row, size_t column, size_t c, size_t out) const {
        const size_t panel = out / kPanelWidth * kPanelWidth;
        const size_t width = std::min(kPanelWidth, packed_width(out_channels_ - panel));
        return Tiles::weight(filters_ + (row * kSide + column) * product_size_ + panel * depth_, width, c,
                             out - panel);
    }

    const Conv2dArgs& g_;
    size_t in_channels_, out_channels_, first_in_, first_out_;  // of the group
    size_t depth_, width_, product_size_;
    const Element* filters_;
    size_t tile_rows_, tile_columns_;
    size_t strip_ = 0, input_step_ = 0, sums_step_ = 0;
    WinogradScratch<Tiles>& scratch_;
};

// Thread ith's share of nth: tiles of one group after the other.
template <class Tiles>
void convolve_tiles(const Conv2dArgs& g, const typename Tiles::B::Element* packed, int ith, int nth) {
    static thread_local WinogradScratch<Tiles> scratch;
    const size_t tiles = winograd_tiles(g);
    const size_t first = g.groups * tiles * ith / nth, last = g.groups * tiles * (ith + 1) / nth;
    for (size_t group = 0; group < g.groups; ++group) {
        const size_t begin = std::clamp(first, group * tiles, (group + 1) * tiles),
                     end = std::clamp(last, begin, (group + 1) * tiles);
        if (begin < end)
            WinogradConvolution<Tiles>(g, group, packed, scratch)
                .run(begin - group * tiles, end - group * tiles);
    }
}

}  // namespace
}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADRACE_KERNELS_NHWC_WINOGRAD_INL_H_
