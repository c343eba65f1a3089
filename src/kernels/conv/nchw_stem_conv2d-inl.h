// Convolution of few input channels whose output has its channels first: vectors are neighbours in a row, so
// that sums are stored where they belong. Included once per SIMD target, by packed_conv2d_f32.cpp.
#if defined(HEADRACE_KERNELS_NCHW_STEM_CONV2D_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_KERNELS_NCHW_STEM_CONV2D_INL_H_
#undef HEADRACE_KERNELS_NCHW_STEM_CONV2D_INL_H_
#else
#define HEADRACE_KERNELS_NCHW_STEM_CONV2D_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "hwy/highway.h"
#include "kernels/conv/conv2d_limits-inl.h"
#include "kernels/conv/image_strip-inl.h"
#include "kernels/conv/packed_conv2d_f32.h"
#include "kernels/gemm/gemm_share.h"
#include "kernels/gemm/gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

// With 16 registers 4 x 3 sums are as many as fit, in WebAssembly 4 x 2.
inline constexpr size_t kPlaneChannels = kRegisters == 32 ? 8 : 4, kPlaneVecs = kIsWebAssembly ? 2 : 3;
// Bytes of the input that some rows of output read: more than fits an L1 cache, since each of their channels
// reads it front to back (12 KiB took 6 % longer); or one row's.
inline constexpr size_t kPlanesBytes = 48 << 10, kMostPlanesBytes = 256 << 10;
// Beyond that, turning the sums around is a small part of the work.
inline constexpr size_t kMostPlanesDepth = 256;

// Some output channels of one panel for some vectors of a row.
struct PlanesTile {
    const float* x;          // what the first pixel's window begins with
    const int32_t* offsets;  // of each element of depth from there
    size_t depth;
    const float* filters;  // [depth][kFilterPanel], from the first channel
    const float* bias;     // of each channel
    float* y;              // of the first channel
    size_t plane;          // floats from one channel to the next
    size_t cols;           // pixels to store
    const Limits* limits;
    // What is read next: for each element of depth the lines of so many vectors are fetched, ahead_stride
    // floats apart. Or null.
    const float* ahead;
    size_t ahead_vecs, ahead_stride;
};

template <size_t kChannels, size_t kVecs>
HWY_NOINLINE void planes_tile(const PlanesTile& t) {
    const TileTag d;
    const Limits limits = *t.limits;
    TileVec sum[kChannels][kVecs];
    HWY_UNROLL(8)
    for (size_t c = 0; c < kChannels; ++c) {
        HWY_UNROLL(4)
        for (size_t v = 0; v < kVecs; ++v) sum[c][v] = hn::Set(d, t.bias[c]);
    }
    const float* filter = t.filters;
    const size_t vecs_ahead = t.ahead ? t.ahead_vecs : 0;
    for (size_t k = 0; k < t.depth; ++k, filter += kFilterPanel) {
        for (size_t v = 0; v < vecs_ahead; ++v)
            __builtin_prefetch(t.ahead + k * t.ahead_stride + v * kLanes, 0, 2);
        const float* from = t.x + t.offsets[k];
        TileVec x[kVecs];
        HWY_UNROLL(4)
        for (size_t v = 0; v < kVecs; ++v) x[v] = hn::LoadU(d, from + v * kLanes);
        HWY_UNROLL(8)
        for (size_t c = 0; c < kChannels; ++c) {
            const TileVec weight = hn::Set(d, filter[c]);
            HWY_UNROLL(4)
            for (size_t v = 0; v < kVecs; ++v) sum[c][v] = hn::MulAdd(weight, x[v], sum[c][v]);
        }
    }
    HWY_UNROLL(8)
    for (size_t c = 0; c < kChannels; ++c) {
        float* y = t.y + c * t.plane;
        HWY_UNROLL(4)
        for (size_t v = 0; v < kVecs; ++v) {
            const TileVec finished = limits(sum[c][v]);
            if (v + 1 < kVecs || t.cols >= kVecs * kLanes)
                hn::StoreU(finished, d, y + v * kLanes);
            else
                store_first(finished, d, y + v * kLanes, t.cols - v * kLanes);
        }
    }
}

// What is left to do for `cols` pixels of some output channels, the first of which are at y[at].
HWY_INLINE void finish_planes(const Conv2dArgs& g, size_t at, size_t channels, size_t cols) {
    if (finishes_in_registers(g)) return;
    const auto stride = static_cast<ptrdiff_t>(g.out_h * g.out_w);
    finish({.activation = g.activation,
            .clamp_min = g.clamp_min,
            .clamp_max = g.clamp_max,
            .residual = g.residual ? g.residual + at : nullptr,
            .residual_first = g.residual_first,
            .ldr = stride},
           channels, cols, g.y + at, stride);
}

using PlanesTileFn = void (*)(const PlanesTile&);

template <size_t... kIndices>
PlanesTileFn planes_tile_fn(size_t channels, size_t vecs, std::index_sequence<kIndices...>) {
    static constexpr PlanesTileFn fns[] = {
        &planes_tile<kIndices / kPlaneVecs + 1, kIndices % kPlaneVecs + 1>...};
    return fns[(channels - 1) * kPlaneVecs + vecs - 1];
}

// One image's group.
class PlanesConvolution {
public:
    // What a thread keeps from one convolution to the next.
    struct Scratch {
        std::vector<float> rows;
        std::vector<int32_t> offsets;
    };

    static bool applies(const Conv2dArgs& g) {
        const size_t lanes = divide_up(g.out_w, kLanes) * kLanes;
        return !g.channels_last_y && !is_pointwise(g) && g.stride_w <= 2 && depth_of(g) <= kMostPlanesDepth &&
               bytes_of(g, 1) <= kMostPlanesBytes && lanes - g.out_w <= lanes / 8;
    }

    // Rows of output at a time.
    static size_t rows_at_once(const Conv2dArgs& g) {
        size_t rows = 1;
        while (rows < g.out_h && bytes_of(g, rows + 1) <= kPlanesBytes) ++rows;
        return rows;
    }

    PlanesConvolution(const Conv2dArgs& g, const float* packed, size_t batch, size_t rows, Scratch& scratch)
        : g_(g),
          limits_(g),
          channels_(g.in_channels / g.groups),
          first_(batch % g.groups * (g.out_channels / g.groups)),
          image_(batch / g.groups),
          x_(g.x + (image_ * g.in_channels + batch % g.groups * channels_) * g.in_h * g.in_w),
          depth_(depth_of(g)),
          filters_(packed + batch % g.groups * packed_filters_size(g.out_channels / g.groups, 1, depth_)),
          plane_(input_rows(g, rows) * phase_length(g) * g.stride_w),
          scratch_(scratch) {
        scratch.rows.resize(std::max(scratch.rows.size(), channels_ * plane_));
        scratch.offsets.clear();
        const size_t phase = phase_length(g), row = phase * g.stride_w;
        for (size_t c = 0; c < channels_; ++c)
            for (size_t ky = 0; ky < g.kernel_h; ++ky)
                for (size_t kx = 0; kx < g.kernel_w; ++kx) {
                    const size_t column = kx * g.dilation_w;
                    scratch.offsets.push_back(static_cast<int32_t>(c * plane_ + ky * g.dilation_h * row +
                                                                   column % g.stride_w * phase +
                                                                   column / g.stride_w));
                }
    }

    // Rows [row, row_end) of the group's output channels [first, last), which begin a panel.
    void run(size_t row, size_t row_end, size_t first, size_t last) {
        for (size_t c = 0; c < channels_; ++c)
            fill_strip(g_, x_ + c * g_.in_h * g_.in_w, row, row_end - row, scratch_.rows.data() + c * plane_);
        for (size_t panel = first; panel < last; panel += kFilterPanel) {
            const size_t end = std::min(last, panel + kFilterPanel);
            const size_t tiles = divide_up(end - panel, kPlaneChannels);
            for (size_t i = 0, out = panel; i < tiles; ++i) {
                const size_t next = panel + (i + 1) * (end - panel) / tiles;
                for (size_t y = row; y < row_end; ++y) run_row(y, y - row, out, next - out);
                out = next;
            }
        }
    }

private:
    static size_t depth_of(const Conv2dArgs& g) { return g.in_channels / g.groups * g.kernel_h * g.kernel_w; }
    static size_t bytes_of(const Conv2dArgs& g, size_t rows) {
        return g.in_channels / g.groups * input_rows(g, rows) * phase_length(g) * g.stride_w * sizeof(float);
    }

    // A row of `channels` output channels from `out` on.
    void run_row(size_t y, size_t row_of_strip, size_t out, size_t channels) const {
        const size_t pixels = g_.out_h * g_.out_w;
        const size_t at = (image_ * g_.out_channels + first_ + out) * pixels + y * g_.out_w;
        PlanesTile tile{};
        tile.offsets = scratch_.offsets.data(), tile.depth = depth_;
        tile.filters = filters_ + out / kFilterPanel * depth_ * kFilterPanel + out % kFilterPanel;
        tile.bias = g_.bias ? g_.bias + first_ + out : kZeros;
        tile.plane = pixels, tile.limits = &limits_;
        const float* x = scratch_.rows.data() + row_of_strip * g_.stride_h * phase_length(g_) * g_.stride_w;
        const size_t vecs = divide_up(g_.out_w, kLanes), tiles = divide_up(vecs, kPlaneVecs);
        for (size_t i = 0, vec = 0; i < tiles; ++i) {
            const size_t next = (i + 1) * vecs / tiles;
            tile.x = x + vec * kLanes, tile.y = g_.y + at + vec * kLanes;
            tile.cols = g_.out_w - vec * kLanes;
            planes_tile_fn(channels, next - vec,
                           std::make_index_sequence<kPlaneChannels * kPlaneVecs>())(tile);
            vec = next;
        }
        finish_planes(g_, at, channels, g_.out_w);
    }

    const Conv2dArgs& g_;
    Limits limits_;
    size_t channels_, first_, image_;
    const float* x_;
    size_t depth_;
    const float* filters_;
    size_t plane_;  // floats of a channel of the strip
    Scratch& scratch_;
};

HWY_INLINE void convolve_planes(const Conv2dArgs& g, const float* packed, int ith, int nth) {
    static thread_local PlanesConvolution::Scratch scratch;
    const size_t rows = PlanesConvolution::rows_at_once(g), strips = divide_up(g.out_h, rows);
    const size_t out_channels = g.out_channels / g.groups;
    for_each_rect(g.batch * g.groups, strips, out_channels, 1, ith, nth, [&](const Rect& rect) {
        PlanesConvolution convolution(g, packed, rect.batch, rows, scratch);
        for (size_t i = rect.row; i < rect.row_end; ++i)
            convolution.run(i * g.out_h / strips, (i + 1) * g.out_h / strips, rect.panel * kPanelWidth,
                            std::min(out_channels, rect.panel_end * kPanelWidth));
    });
}

}  // namespace
}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADRACE_KERNELS_NCHW_STEM_CONV2D_INL_H_
