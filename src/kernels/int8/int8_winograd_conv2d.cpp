#include "kernels/int8/int8_winograd_conv2d.h"

#include <algorithm>
#include <vector>

#include "kernels/conv/conv_share.h"
#include "kernels/simd/targets.h"

#ifndef HEADRACE_KERNELS_INT8_WINOGRAD_LAYOUT
#define HEADRACE_KERNELS_INT8_WINOGRAD_LAYOUT
namespace headrace::kernels {

// A tile of the output is 2 × 2 pixels and reads 4 × 4. Filters are transformed by twice the matrix G that
// has halves: sums are 4 times what they stand for, and everything fits in 16 bits but the sums.
inline constexpr size_t kInt8Products = 16, kInt8Side = 4;

// All products' pairs of a panel of output channels lie together: [panel][product][pairs][kPairPanel][2].
inline size_t int8_product_size(size_t in_channels) { return (in_channels + 1) / 2 * 2 * kPairPanel; }

}  // namespace headrace::kernels
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/int8/int8_winograd_conv2d.cpp"
#include "hwy/foreach_target.h"
#include "kernels/int8/pair_strip-inl.h"
#include "kernels/int8/widened_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

// What the tiles of a strip read stays in the L2 cache, beside a panel's filters.
inline constexpr size_t kStripTilesBytes = 256 << 10, kFewestStripTiles = 12;

// Neighbouring products lie apart by a line more than the tiles take, or all would share lines of the L1
// cache.
inline constexpr size_t kInt8Gap = 32, kInt8SumsGap = 16;

struct Int8WinogradScratch {
    std::vector<int16_t> inputs;      // [product][tile][pairs][2]
    std::vector<int32_t> sums;        // [product][tile][kPairPanel]
    std::vector<int32_t> slice_sums;  // of the slices of depth that came before
    std::vector<int8_t> outside;      // in_channels
};

template <class V>
void grow_to(V& v, size_t size) {
    if (v.size() < size) v.resize(size);
}

// Bᵀ d of four values.
template <class V>
HWY_INLINE void transform_pixels(V (&d)[kInt8Side]) {
    const V first = hn::Sub(d[0], d[2]), second = hn::Add(d[1], d[2]);
    const V third = hn::Sub(d[2], d[1]), fourth = hn::Sub(d[1], d[3]);
    d[0] = first, d[1] = second, d[2] = third, d[3] = fourth;
}

// X, Y: of the image and of the result.
template <class X, class Y>
class Int8Winograd {
public:
    Int8Winograd(const Int8Conv2dArgs& g, const std::byte* packed, Int8WinogradScratch& scratch)
        : g_(g),
          filters_(reinterpret_cast<const int16_t*>(packed)),
          pairs_((g.in_channels + 1) / 2),
          tile_rows_((g.out_h + 1) / 2),
          tile_columns_((g.out_w + 1) / 2),
          round_(g.result),
          scratch_(scratch) {
        strip_ = std::clamp<size_t>(kStripTilesBytes / (kInt8Products * pairs_ * 2 * sizeof(int16_t)),
                                    kFewestStripTiles, kMostStripRows);
        input_step_ = strip_ * pairs_ * 2 + kInt8Gap, sums_step_ = strip_ * kPairPanel + kInt8SumsGap;
        grow_to(scratch.inputs, kInt8Products * input_step_);
        grow_to(scratch.sums, kInt8Products * sums_step_);
        grow_to(scratch.slice_sums, kMostStripRows * kPairPanel);
        scratch.outside.assign(g.in_channels, static_cast<int8_t>(g.x_zero));
    }

    // Tiles [first, last) of all images, output channels [out, out_end).
    void run(size_t first, size_t last, size_t out, size_t out_end) {
        const size_t strips = divide_up(last - first, strip_);
        for (size_t i = 0; i < strips; ++i) {
            const size_t begin = first + i * (last - first) / strips,
                         end = first + (i + 1) * (last - first) / strips;
            for (size_t t = begin; t < end; ++t) read_tile(tile(t), t - begin);
            for (size_t o = out; o < out_end; o += kPairPanel) {
                multiply(end - begin, o);
                write_tiles(begin, end, o, std::min(kPairPanel, g_.out_channels - o));
            }
        }
    }

private:
    struct Tile {
        size_t image, row, column;  // of the output's first pixel
    };
    Tile tile(size_t i) const {
        const size_t column = i % tile_columns_, row = i / tile_columns_;
        return {row / tile_rows_, row % tile_rows_ * 2, column * 2};
    }

    // Where pixel (y, x) of the 4 × 4 that a tile reads lies.
    const X* source(const Tile& t, size_t y, size_t x) const {
        const ptrdiff_t row = static_cast<ptrdiff_t>(t.row + y) - g_.pad_top;
        const ptrdiff_t column = static_cast<ptrdiff_t>(t.column + x) - g_.pad_left;
        if (row < 0 || column < 0 || row >= static_cast<ptrdiff_t>(g_.in_h) ||
            column >= static_cast<ptrdiff_t>(g_.in_w))
            return reinterpret_cast<const X*>(scratch_.outside.data());
        return static_cast<const X*>(g_.x.data) +
               ((t.image * g_.in_h + static_cast<size_t>(row)) * g_.in_w + static_cast<size_t>(column)) *
                   g_.in_channels;
    }

    // The last vector of channels overlaps the one before it.
    void read_tile(const Tile& t, size_t at) {
        const size_t lanes = hn::Lanes(WideTag());
        const X* from[kInt8Products];
        for (size_t i = 0; i < kInt8Products; ++i) from[i] = source(t, i / kInt8Side, i % kInt8Side);
        int16_t* to = scratch_.inputs.data() + at * pairs_ * 2;
        size_t c = 0;
        for (; c + lanes <= g_.in_channels; c += lanes) read_channels(from, c, to);
        if (c < g_.in_channels) read_channels(from, g_.in_channels - lanes, to);
    }
    HWY_INLINE void read_channels(const X* const (&from)[kInt8Products], size_t c, int16_t* to) const {
        const WideTag d;
        const auto zero = hn::Set(d, static_cast<int16_t>(g_.x_zero));
        hn::Vec<WideTag> columns[kInt8Side][kInt8Side];  // [column][row]
        HWY_UNROLL(4)
        for (size_t x = 0; x < kInt8Side; ++x) {
            HWY_UNROLL(4)
            for (size_t y = 0; y < kInt8Side; ++y)
                columns[x][y] = hn::Sub(load_widened(from[y * kInt8Side + x] + c), zero);
            transform_pixels(columns[x]);
        }
        HWY_UNROLL(4)
        for (size_t y = 0; y < kInt8Side; ++y) {
            hn::Vec<WideTag> row[kInt8Side] = {columns[0][y], columns[1][y], columns[2][y], columns[3][y]};
            transform_pixels(row);
            HWY_UNROLL(4)
            for (size_t x = 0; x < kInt8Side; ++x)
                hn::StoreU(row[x], d, to + (y * kInt8Side + x) * input_step_ + c);
        }
    }

    void multiply(size_t tiles, size_t out) {
        static constexpr int32_t kNothing[kPairPanel] = {};
        const size_t product = int8_product_size(g_.in_channels);
        const int16_t* panel = filters_ + out / kPairPanel * kInt8Products * product;
        const PairTile t{.init = kNothing, .ldy = kPairPanel, .channels = kPairPanel};
        for (size_t i = 0; i < kInt8Products; ++i)
            multiply_strip(t, scratch_.inputs.data() + i * input_step_, scratch_.slice_sums.data(), tiles,
                           panel + i * product, pairs_, scratch_.sums.data() + i * sums_step_);
    }

    void write_tiles(size_t begin, size_t end, size_t out, size_t channels) const {
        alignas(64) float bias[kPairPanel] = {}, scale[kPairPanel] = {};
        if (g_.result.bias) std::copy_n(g_.result.bias + out, channels, bias);
        std::copy_n(g_.result.scale + out, channels, scale);
        const PairTile row{.bias = bias, .scale = scale, .round = &round_, .channels = channels};
        for (size_t i = begin; i < end; ++i) write_tile(tile(i), i - begin, row, out);
    }
    HWY_INLINE void write_tile(const Tile& t, size_t at, const PairTile& panel, size_t out) const {
        const Int8Tag d;
        const int32_t* from = scratch_.sums.data() + at * kPairPanel;
        Int8Vec sums[2][2][kPanelVecs];
        for (size_t v = 0; v < kPanelVecs; ++v)
            sum_products([&](size_t i) HWY_ATTR { return hn::LoadU(d, from + i * sums_step_ + v * kLanes); },
                         [&](size_t r, size_t x, Int8Vec sum)
                             HWY_ATTR { sums[r][x][v] = hn::ShiftRight<2>(sum); });
        const size_t rows = std::min<size_t>(2, g_.out_h - t.row),
                     columns = std::min<size_t>(2, g_.out_w - t.column);
        for (size_t r = 0; r < rows; ++r)
            for (size_t x = 0; x < columns; ++x) {
                const size_t pixel = (t.image * g_.out_h + t.row + r) * g_.out_w + t.column + x;
                store_panel_row(panel, sums[r][x],
                                static_cast<Y*>(g_.result.y) + pixel * g_.out_channels + out);
            }
    }
    // Aᵀ m A.
    template <class Load, class Take>
    static HWY_INLINE void sum_products(Load load, Take take) {
        Int8Vec half[2][kInt8Side];
        HWY_UNROLL(4)
        for (size_t x = 0; x < kInt8Side; ++x) {
            const Int8Vec second = load(kInt8Side + x), third = load(2 * kInt8Side + x);
            half[0][x] = hn::Add(load(x), hn::Add(second, third));
            half[1][x] = hn::Sub(hn::Sub(second, third), load(3 * kInt8Side + x));
        }
        HWY_UNROLL(2)
        for (size_t r = 0; r < 2; ++r) {
            take(r, 0, hn::Add(half[r][0], hn::Add(half[r][1], half[r][2])));
            take(r, 1, hn::Sub(hn::Sub(half[r][1], half[r][2]), half[r][3]));
        }
    }

    const Int8Conv2dArgs& g_;
    const int16_t* filters_;
    size_t pairs_, tile_rows_, tile_columns_;
    size_t strip_ = 0, input_step_ = 0, sums_step_ = 0;
    Rounder round_;
    Int8WinogradScratch& scratch_;
};

template <class X, class Y>
void winograd_share(const Int8Conv2dArgs& g, const std::byte* packed, int ith, int nth) {
    static thread_local Int8WinogradScratch scratch;
    const size_t tiles = g.batch * ((g.out_h + 1) / 2) * ((g.out_w + 1) / 2);
    const ConvShare share = conv_share({tiles, g.out_channels, kInt8Products * g.in_channels}, ith, nth);
    if (share.out == share.out_end || share.pixel == share.pixel_end) return;
    Int8Winograd<X, Y>(g, packed, scratch).run(share.pixel, share.pixel_end, share.out, share.out_end);
}

}  // namespace

void convolve_int8_winograd(const Int8Conv2dArgs& g, const std::byte* packed, int ith, int nth) {
    if (g.x.is_signed)
        g.result.is_signed ? winograd_share<int8_t, int8_t>(g, packed, ith, nth)
                           : winograd_share<int8_t, uint8_t>(g, packed, ith, nth);
    else
        g.result.is_signed ? winograd_share<uint8_t, int8_t>(g, packed, ith, nth)
                           : winograd_share<uint8_t, uint8_t>(g, packed, ith, nth);
}

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(convolve_int8_winograd);

bool has_int8_winograd_conv2d(const Int8Conv2dArgs& g) {
    // A vector of channels at least; sums that are four times as large still have room.
    constexpr size_t kChannels = 16, kTiles = 16;
    const size_t tiles = g.batch * ((g.out_h + 1) / 2) * ((g.out_w + 1) / 2),
                 pixels = g.batch * g.out_h * g.out_w;
    return g.kernel_h == 3 && g.kernel_w == 3 && g.stride_h == 1 && g.stride_w == 1 && g.dilation_h == 1 &&
           g.dilation_w == 1 && g.groups == 1 && g.in_channels >= kChannels && g.out_channels >= kChannels &&
           have_room(4 * g.depth()) && tiles >= kTiles && 3 * kInt8Products * tiles <= 2 * 9 * pixels;
}

size_t packed_int8_winograd_bytes(size_t in_channels, size_t out_channels) {
    const size_t panels = (out_channels + kPairPanel - 1) / kPairPanel;
    return panels * kInt8Products * int8_product_size(in_channels) * sizeof(int16_t);
}

template <class T>
void pack_int8_winograd(const T* w, size_t in_channels, size_t out_channels, std::byte* packed) {
    // 2 G.
    constexpr int kFilter[kInt8Side][3] = {{2, 0, 0}, {1, 1, 1}, {1, -1, 1}, {0, 0, 2}};
    std::fill_n(packed, packed_int8_winograd_bytes(in_channels, out_channels), std::byte{0});
    auto* to = reinterpret_cast<int16_t*>(packed);
    const size_t size = int8_product_size(in_channels);
    for (size_t o = 0; o < out_channels; ++o) {
        const T* filter = w + o * 9 * in_channels;
        int16_t* panel = to + o / kPairPanel * kInt8Products * size;
        for (size_t c = 0; c < in_channels; ++c)
            for (size_t i = 0; i < kInt8Products; ++i) {
                int sum = 0;
                for (size_t tap = 0; tap < 9; ++tap)
                    sum += kFilter[i / kInt8Side][tap / 3] * kFilter[i % kInt8Side][tap % 3] *
                           filter[tap * in_channels + c];
                panel[i * size + (c / 2 * kPairPanel + o % kPairPanel) * 2 + c % 2] =
                    static_cast<int16_t>(sum);
            }
    }
}
template void pack_int8_winograd(const int8_t*, size_t, size_t, std::byte*);
template void pack_int8_winograd(const int16_t*, size_t, size_t, std::byte*);

void int8_winograd_conv2d(const Int8Conv2dArgs& args, const std::byte* packed, int ith, int nth) {
    HWY_DYNAMIC_DISPATCH(convolve_int8_winograd)(args, packed, ith, nth);
}

}  // namespace headrace::kernels
#endif
