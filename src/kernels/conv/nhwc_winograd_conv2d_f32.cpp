#include "kernels/conv/nhwc_winograd_conv2d_f32.h"

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/gemm/gemm_share.h"
#include "kernels/simd/targets.h"

#ifndef HEADRACE_KERNELS_WINOGRAD_LAYOUT
#define HEADRACE_KERNELS_WINOGRAD_LAYOUT
namespace headrace::kernels {

// A tile of the output is 2 × 2 pixels and reads 4 × 4. Filters and what they read are transformed so that 16
// products, each a matrix product over channels, take the place of a window's 9.
inline constexpr size_t kProducts = 16, kSide = 4;

}  // namespace headrace::kernels
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/nhwc_winograd_conv2d_f32.cpp"
#include "hwy/foreach_target.h"
#include "kernels/conv/nhwc_epilogue-inl.h"
#include "kernels/gemm/gemm_epilogue-inl.h"
#include "kernels/gemm/gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

// Tiles that share the filters while these are in the cache; what they read stays in the L2 cache.
inline constexpr size_t kStripTiles = 48, kStripFloats = 8192;

// Neighbouring products lie apart by a line more than the tiles take, or all would share lines of the L1
// cache.
inline constexpr size_t kGap = 16;

struct WinogradScratch {
    std::vector<float> inputs;   // [product][tile][in_channels]
    std::vector<float> sums;     // [product][tile][kPanelWidth]
    std::vector<float> zeros;    // in_channels
    std::vector<char> is_exact;  // of each tile; false: it met NaN or infinity
};

// Bᵀ d of four values.
template <class V>
HWY_INLINE void transform_input(V (&d)[kSide]) {
    const V first = hn::Sub(d[0], d[2]), second = hn::Add(d[1], d[2]);
    const V third = hn::Sub(d[2], d[1]), fourth = hn::Sub(d[1], d[3]);
    d[0] = first, d[1] = second, d[2] = third, d[3] = fourth;
}

class WinogradConvolution {
public:
    WinogradConvolution(const Conv2dArgs& g, const float* packed, WinogradScratch& scratch)
        : g_(g),
          filters_(packed),
          product_size_(packed_width(g.out_channels) * g.in_channels),
          tile_rows_((g.out_h + 1) / 2),
          tile_columns_((g.out_w + 1) / 2),
          scratch_(scratch) {
        strip_ = std::clamp<size_t>(kStripFloats / g.in_channels, 6, kStripTiles);
        input_step_ = strip_ * g.in_channels + kGap, sums_step_ = strip_ * kPanelWidth + kGap;
        grow(scratch.inputs, kProducts * input_step_);
        grow(scratch.sums, kProducts * sums_step_);
        grow(scratch.zeros, g.in_channels);
        scratch.is_exact.resize(std::max(scratch.is_exact.size(), strip_));
    }
    size_t tiles() const { return g_.batch * tile_rows_ * tile_columns_; }

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
    static void grow(std::vector<float>& v, size_t size) {
        if (v.size() < size) v.resize(size);
    }
    Tile tile(size_t i) const {
        const size_t column = i % tile_columns_, row = i / tile_columns_;
        return {row / tile_rows_, row % tile_rows_ * 2, column * 2};
    }

    void run_strip(size_t first, size_t last) {
        for (size_t i = first; i < last; ++i) read_tile(tile(i), i - first);
        std::fill_n(scratch_.is_exact.begin(), last - first, 1);
        for (size_t out = 0; out < g_.out_channels; out += kPanelWidth) {
            const size_t channels = std::min(kPanelWidth, g_.out_channels - out);
            multiply(last - first, out, channels);
            for (size_t i = first; i < last; ++i) write_tile(tile(i), i - first, out, channels);
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
                   g_.in_channels;
    }

    void read_tile(const Tile& t, size_t at) {
        const TileTag d;
        const float* from[kProducts];
        for (size_t i = 0; i < kProducts; ++i) {
            from[i] = source(t, i / kSide, i % kSide);
            if (!from[i]) from[i] = scratch_.zeros.data();
        }
        float* to = scratch_.inputs.data() + at * g_.in_channels;
        size_t c = 0;
        for (; c + kLanes <= g_.in_channels; c += kLanes)
            read_channels([&](size_t i) HWY_ATTR { return hn::LoadU(d, from[i] + c); },
                          [&](TileVec v, size_t i) HWY_ATTR { hn::StoreU(v, d, to + i * input_step_ + c); });
        if (const size_t rest = g_.in_channels - c)
            read_channels([&](size_t i) HWY_ATTR { return load_first(d, from[i] + c, rest); },
                          [&](TileVec v, size_t i)
                              HWY_ATTR { store_first(v, d, to + i * input_step_ + c, rest); });
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
            PanelJob job{};
            job.rows = tiles, job.cols = width, job.depth = g_.in_channels;
            job.a = scratch_.inputs.data() + i * input_step_,
            job.lda = static_cast<ptrdiff_t>(g_.in_channels);
            job.b = filters_ + i * product_size_ + out * g_.in_channels,
            job.ldb = static_cast<ptrdiff_t>(width);
            job.c = scratch_.sums.data() + i * sums_step_, job.ldc = kPanelWidth;
            job.init = kZeros, job.last = true;
            run_panel(job);
        }
    }

    // Output rows and columns of a tile that exist.
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
                const size_t to = place(t, r, x);
                for (size_t out = 0; out < g_.out_channels; ++out) g_.y[to + out] = window(t, r, x, out);
                finish({.activation = g_.activation,
                        .clamp_min = g_.clamp_min,
                        .clamp_max = g_.clamp_max,
                        .residual = g_.residual ? g_.residual + to : nullptr,
                        .residual_first = g_.residual_first,
                        .ldr = static_cast<ptrdiff_t>(g_.out_channels)},
                       1, g_.out_channels, g_.y + to, static_cast<ptrdiff_t>(g_.out_channels));
            }
    }
    float window(const Tile& t, size_t row, size_t column, size_t out) const {
        double sum = g_.bias ? g_.bias[out] : 0;
        for (size_t y = 0; y < 3; ++y)
            for (size_t x = 0; x < 3; ++x)
                if (const float* pixel = source(t, row + y, column + x))
                    for (size_t c = 0; c < g_.in_channels; ++c)
                        sum += double(pixel[c]) * weight(y, x, c, out);
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
        const size_t width = std::min(kPanelWidth, packed_width(g_.out_channels - panel));
        return filters_[(row * kSide + column) * product_size_ + panel * g_.in_channels + c * width + out -
                        panel];
    }

    const Conv2dArgs& g_;
    const float* filters_;
    size_t product_size_, tile_rows_, tile_columns_;
    size_t strip_ = 0, input_step_ = 0, sums_step_ = 0;
    WinogradScratch& scratch_;
};

}  // namespace

void nhwc_winograd_conv2d(const Conv2dArgs& g, const float* packed, int ith, int nth) {
    static thread_local WinogradScratch scratch;
    WinogradConvolution convolution(g, packed, scratch);
    const size_t tiles = convolution.tiles();
    convolution.run(tiles * ith / nth, tiles * (ith + 1) / nth);
}

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(nhwc_winograd_conv2d);

bool has_nhwc_winograd_conv2d(const Conv2dArgs& g) {
    constexpr size_t kChannels = 32, kTiles = 16;
    const size_t tiles = g.batch * ((g.out_h + 1) / 2) * ((g.out_w + 1) / 2),
                 pixels = g.batch * g.out_h * g.out_w;
    return g.kernel_h == 3 && g.kernel_w == 3 && g.stride_h == 1 && g.stride_w == 1 && g.dilation_h == 1 &&
           g.dilation_w == 1 && g.groups == 1 && g.in_channels >= kChannels && g.out_channels >= kChannels &&
           tiles >= kTiles && 3 * kProducts * tiles <= 2 * 9 * pixels;
}

size_t packed_winograd_filters_size(size_t in_channels, size_t out_channels) {
    return kProducts * packed_bytes(in_channels, out_channels) / sizeof(float);
}

void pack_winograd_filters(const float* w, size_t in_channels, size_t out_channels, float* packed) {
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
        pack(product.data(), static_cast<ptrdiff_t>(out_channels), 1, in_channels, out_channels,
             packed + i * packed_bytes(in_channels, out_channels) / sizeof(float));
    }
}

void nhwc_winograd_conv2d_f32(const Conv2dArgs& args, const float* packed, int ith, int nth) {
    HWY_DYNAMIC_DISPATCH(nhwc_winograd_conv2d)(args, packed, ith, nth);
}

}  // namespace headrace::kernels
#endif
