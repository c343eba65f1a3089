#include "kernels/conv/nhwc_conv2d_f32.h"

#include <algorithm>
#include <vector>

#include "kernels/conv/conv_share.h"
#include "kernels/conv/packed_conv2d_f32.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/nhwc_conv2d_f32.cpp"
#include "hwy/foreach_target.h"
#include "kernels/conv/nhwc_epilogue-inl.h"
#include "kernels/gemm/gemm_epilogue-inl.h"
#include "kernels/gemm/gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

// Pixels of the output that share a slice of filters while it is in the L1 cache. Few of them read it too
// seldom for that to be worth more sums on their way to memory and back: then the L2 cache has to do.
inline constexpr size_t kStripPixels = 96, kFewPixels = 24;
inline constexpr size_t kSliceBytes = (kRegisters == 32 ? 24 : 16) << 10;
constexpr size_t slice_bytes(size_t pixels) { return pixels <= kFewPixels ? 5 * kSliceBytes : kSliceBytes; }

// A stretch of depth whose elements are neighbours in the input: a tap's channels, or those of a row of taps.
struct Run {
    size_t tap, skip;  // where it begins: so many floats behind the tap's first channel
    size_t k, depth;
};

// One tile over a slice of depth.
struct PixelTile {
    const float* const*
        taps;  // [tap][pixel]: where each pixel meets the input, from the tile's first pixel on
    size_t taps_stride;
    const float* zeros;  // what taps outside the image point to
    const Run* runs;
    size_t run_count;
    const float* filters;  // of the first panel
    size_t panel_stride;
    const float*
        ahead[2];       // panels that are read next, to be fetched meanwhile; null: leave it to the processor
    const float* bias;  // sums start from it; null: they go on from y
    bool is_last;       // the epilogue is due
    NhwcEpilogue epilogue;
    float* y;
    size_t y_stride;
    size_t tail;  // lanes of the last vector that exist
};

template <size_t kVecs, size_t kPixels>
HWY_INLINE void add_run(const PixelTile& t, const Run& run, TileVec (&sum)[kPixels][kVecs]) {
    const TileTag d;
    const float* const* at = t.taps + run.tap * t.taps_stride;
    if (std::all_of(at, at + kPixels, [&](const float* x) { return x == t.zeros; })) return;
    const float* x[kPixels];
    const float* filters[kVecs];
    for (size_t r = 0; r < kPixels; ++r) x[r] = at[r] + run.skip;
    for (size_t v = 0; v < kVecs; ++v)
        filters[v] = t.filters + v * kLanes / kFilterPanel * t.panel_stride + run.k * kFilterPanel +
                     v * kLanes % kFilterPanel;
    const auto add = [&](size_t i) HWY_ATTR {
        TileVec row[kVecs];
        HWY_UNROLL(16)
        for (size_t v = 0; v < kVecs; ++v) row[v] = hn::LoadU(d, filters[v] + i * kFilterPanel);
        HWY_UNROLL(16)
        for (size_t r = 0; r < kPixels; ++r) {
            const TileVec pixel = hn::Set(d, x[r][i]);
            HWY_UNROLL(16)
            for (size_t v = 0; v < kVecs; ++v) sum[r][v] = hn::MulAdd(pixel, row[v], sum[r][v]);
        }
    };
    if (t.ahead[0]) {
        for (size_t i = 0; i < run.depth; ++i) {
            for (const float* panel : t.ahead) __builtin_prefetch(panel + (run.k + i) * kFilterPanel, 0, 2);
            add(i);
        }
    } else {
        for (size_t i = 0; i < run.depth; ++i) add(i);
    }
}

template <size_t kVecs, size_t kPixels>
HWY_NOINLINE void pixel_tile(const PixelTile& t) {
    const TileTag d;
    const auto each = [&](auto fn) HWY_ATTR {
        HWY_UNROLL(16)
        for (size_t r = 0; r < kPixels; ++r) {
            HWY_UNROLL(16)
            for (size_t v = 0; v < kVecs; ++v) fn(r, v);
        }
    };
    const bool is_whole = t.tail == kLanes;
    const auto load = [&](const float* from, size_t v) HWY_ATTR {
        return v + 1 < kVecs || is_whole ? hn::LoadU(d, from + v * kLanes)
                                         : load_first(d, from + v * kLanes, t.tail);
    };
    TileVec sum[kPixels][kVecs];
    if (t.bias)
        each([&](size_t r, size_t v) HWY_ATTR { sum[r][v] = hn::LoadU(d, t.bias + v * kLanes); });
    else
        each([&](size_t r, size_t v) HWY_ATTR { sum[r][v] = load(t.y + r * t.y_stride, v); });
    for (size_t i = 0; i < t.run_count; ++i) add_run(t, t.runs[i], sum);
    const NhwcEpilogue& e = t.epilogue;
    if (t.is_last && e.residual && e.residual_first)
        each([&](size_t r, size_t v)
                 HWY_ATTR { sum[r][v] = hn::Add(sum[r][v], load(e.residual + r * t.y_stride, v)); });
    if (t.is_last && e.has_limits)
        each([&](size_t r, size_t v)
                 HWY_ATTR { sum[r][v] = at_most(d, at_least(d, sum[r][v], e.low), e.high); });
    if (t.is_last && e.residual && !e.residual_first)
        each([&](size_t r, size_t v)
                 HWY_ATTR { sum[r][v] = hn::Add(sum[r][v], load(e.residual + r * t.y_stride, v)); });
    each([&](size_t r, size_t v) HWY_ATTR {
        float* to = t.y + r * t.y_stride + v * kLanes;
        if (v + 1 < kVecs || is_whole)
            hn::StoreU(sum[r][v], d, to);
        else
            store_first(sum[r][v], d, to, t.tail);
    });
}

using PixelTileFn = void (*)(const PixelTile&);

template <size_t kVecs, size_t... kPixels>
PixelTileFn pixel_tile_fn(size_t pixels, std::index_sequence<kPixels...>) {
    static constexpr PixelTileFn fns[] = {&pixel_tile<kVecs, kPixels + 1>...};
    return fns[pixels - 1];
}

template <size_t kVecs>
PixelTileFn find_pixel_tile(size_t vecs, size_t pixels) {
    if constexpr (kVecs > 1) {
        if (vecs < kVecs) return find_pixel_tile<kVecs - 1>(vecs, pixels);
    }
    return pixel_tile_fn<kVecs>(pixels, std::make_index_sequence<tile_pixels(kVecs)>());
}

// What a thread keeps from one convolution to the next.
struct NhwcScratch {
    std::vector<const float*> taps;      // [tap][kStripPixels]
    std::vector<float> zeros;            // as many as a row of taps has channels
    std::vector<Run> by_tap, by_row;     // of the slice at hand
    bool meets_edge[kStripPixels] = {};  // a row of taps reaches beyond the image's left or right edge
};

// A convolution for one image and group.
class NhwcConvolution {
public:
    NhwcConvolution(const Conv2dArgs& g, const float* packed, size_t batch, NhwcScratch& scratch)
        : g_(g),
          group_(batch % g.groups),
          image_(batch / g.groups),
          channels_(g.in_channels / g.groups),
          k_(channels_ * g.kernel_h * g.kernel_w),
          x_(g.x + image_ * g.in_h * g.in_w * g.in_channels + group_ * channels_),
          filters_(packed + group_ * packed_filters_size(g.out_channels / g.groups, 1, k_)),
          scratch_(scratch) {
        scratch.taps.resize(std::max(scratch.taps.size(), g.kernel_h * g.kernel_w * kStripPixels));
        scratch.zeros.resize(std::max(scratch.zeros.size(), channels_ * g.kernel_w));
    }

    // Pixels [first, last) of the image's output and channels [out, out_end) of the group's.
    void run(size_t first, size_t last, size_t out, size_t out_end) {
        find_taps(first, last);
        constexpr size_t kColumns = kTileVecs * kLanes;
        for (; out < out_end; out += kColumns) {
            const size_t channels = std::min(kColumns, out_end - out);
            sum_pixels(first, last, out, channels, out + kColumns < out_end);
        }
    }

private:
    void find_taps(size_t first, size_t last) {
        const auto in_h = static_cast<ptrdiff_t>(g_.in_h), in_w = static_cast<ptrdiff_t>(g_.in_w);
        size_t out_y = first / g_.out_w,
               out_x = first % g_.out_w;  // counted on: a division takes longer than a tap
        for (size_t p = first; p < last; ++p, ++out_x) {
            if (out_x == g_.out_w) out_x = 0, ++out_y;
            const ptrdiff_t y = static_cast<ptrdiff_t>(out_y * g_.stride_h) - g_.pad_top;
            const ptrdiff_t x = static_cast<ptrdiff_t>(out_x * g_.stride_w) - g_.pad_left;
            const ptrdiff_t reach = static_cast<ptrdiff_t>((g_.kernel_w - 1) * g_.dilation_w);
            scratch_.meets_edge[p - first] = x < 0 || x + reach >= in_w;
            const float** to = scratch_.taps.data() + (p - first);
            for (size_t ky = 0; ky < g_.kernel_h; ++ky) {
                const ptrdiff_t row = y + static_cast<ptrdiff_t>(ky * g_.dilation_h);
                const bool has_row = row >= 0 && row < in_h;
                for (size_t kx = 0; kx < g_.kernel_w; ++kx, to += kStripPixels) {
                    const ptrdiff_t column = x + static_cast<ptrdiff_t>(kx * g_.dilation_w);
                    const bool is_inside = has_row && column >= 0 && column < in_w;
                    *to = is_inside ? x_ + (row * in_w + column) * static_cast<ptrdiff_t>(g_.in_channels)
                                    : scratch_.zeros.data();
                }
            }
        }
    }

    // Depth [k0, k0 + depth) as stretches of `length` elements each, the first elements of `taps` taps.
    static void find_runs(size_t k0, size_t depth, size_t length, size_t taps, std::vector<Run>& runs) {
        runs.clear();
        for (size_t k = k0; k < k0 + depth;) {
            const size_t skip = k % length, count = std::min(length - skip, k0 + depth - k);
            runs.push_back({k / length * taps, skip, k - k0, count});
            k += count;
        }
    }

    // Filters of the panel of an output channel, from the k-th on.
    const float* filters_at(size_t out, size_t k) const {
        return filters_ + (out / kFilterPanel * k_ + k) * kFilterPanel + out % kFilterPanel;
    }

    void sum_pixels(size_t first, size_t last, size_t out, size_t channels, bool more_follow) {
        const size_t vecs = divide_up(channels, kLanes), width = vecs * kLanes;
        const size_t tiles = divide_up(last - first, tile_pixels(vecs));
        const size_t slices =
            divide_up(k_, std::max<size_t>(1, slice_bytes(last - first) / sizeof(float) / width));
        const size_t channel = group_ * (g_.out_channels / g_.groups) + out;
        alignas(64) float bias[kTileVecs * kLanes] = {};
        if (g_.bias) std::copy_n(g_.bias + channel, channels, bias);
        const bool rows_are_dense = g_.groups == 1 && g_.dilation_w == 1;

        PixelTile tile{};
        tile.taps_stride = kStripPixels, tile.zeros = scratch_.zeros.data();
        tile.panel_stride = k_ * kFilterPanel;
        tile.y_stride = g_.out_channels, tile.tail = channels - (vecs - 1) * kLanes;
        for (size_t s = 0; s < slices; ++s) {
            const size_t k0 = s * k_ / slices, depth = (s + 1) * k_ / slices - k0;
            find_runs(k0, depth, channels_, 1, scratch_.by_tap);
            find_runs(k0, depth, channels_ * g_.kernel_w, g_.kernel_w, scratch_.by_row);
            tile.filters = filters_at(out, k0);
            tile.bias = s == 0 ? bias : nullptr, tile.is_last = s + 1 == slices;
            const float* next_filters = !tile.is_last ? filters_at(out, k0 + depth)
                                        : more_follow ? filters_at(out + channels, 0)
                                                      : nullptr;
            for (size_t i = 0, pixel = 0; i < tiles; ++i) {
                const size_t next = (i + 1) * (last - first) / tiles, count = next - pixel;
                const bool* edges = scratch_.meets_edge + pixel;
                const bool by_row =
                    rows_are_dense && std::none_of(edges, edges + count, [](bool b) { return b; });
                const std::vector<Run>& runs = by_row ? scratch_.by_row : scratch_.by_tap;
                tile.runs = runs.data(), tile.run_count = runs.size();
                tile.taps = scratch_.taps.data() + pixel;
                fetch_share(next_filters, i, tiles, divide_up(channels, kFilterPanel), tile);
                const size_t at = (image_ * g_.out_h * g_.out_w + first + pixel) * g_.out_channels + channel;
                tile.y = g_.y + at;
                tile.epilogue = NhwcEpilogue(g_, at);
                find_pixel_tile<kTileVecs>(vecs, count)(tile);
                if (tile.is_last) tile.epilogue.finish_rest(g_, count, channels, at);
                pixel = next;
            }
        }
    }

    // What comes next is fetched by several tiles, evenly, or memory would be idle in some of them.
    static void fetch_share(const float* next_filters, size_t index, size_t tiles, size_t panels,
                            PixelTile& tile) {
        const size_t panel = 2 * index;
        if (!next_filters || tiles == 1 || panel >= panels) {
            tile.ahead[0] = tile.ahead[1] = nullptr;
        } else {
            tile.ahead[0] = next_filters + panel * tile.panel_stride;
            tile.ahead[1] = next_filters + std::min(panel + 1, panels - 1) * tile.panel_stride;
        }
    }

    const Conv2dArgs& g_;
    size_t group_, image_, channels_, k_;
    const float* x_;
    const float* filters_;
    NhwcScratch& scratch_;
};

}  // namespace

void nhwc_conv2d(const Conv2dArgs& g, const float* packed, int ith, int nth) {
    static thread_local NhwcScratch scratch;
    const size_t pixels = g.out_h * g.out_w;
    const ConvExtent extent{g.batch * g.groups * pixels, g.out_channels / g.groups,
                            g.in_channels / g.groups * g.kernel_h * g.kernel_w};
    const ConvShare share = conv_share(extent, ith, nth);
    if (share.out == share.out_end) return;
    for (size_t at = share.pixel; at < share.pixel_end;) {
        const size_t first = at % pixels, count = std::min(pixels - first, share.pixel_end - at);
        const size_t strips = divide_up(count, kStripPixels);
        NhwcConvolution convolution(g, packed, at / pixels, scratch);
        for (size_t i = 0; i < strips; ++i)
            convolution.run(first + i * count / strips, first + (i + 1) * count / strips, share.out,
                            share.out_end);
        at += count;
    }
}

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(nhwc_conv2d);

void nhwc_conv2d_f32(const Conv2dArgs& args, const float* packed, int ith, int nth) {
    HWY_DYNAMIC_DISPATCH(nhwc_conv2d)(args, packed, ith, nth);
}

}  // namespace headrace::kernels
#endif
