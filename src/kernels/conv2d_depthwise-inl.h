// Direct convolution of one input channel at a time. Included once per SIMD target, by conv2d_f32.cpp.
#if defined(HEADRACE_KERNELS_CONV2D_DEPTHWISE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_KERNELS_CONV2D_DEPTHWISE_INL_H_
#undef HEADRACE_KERNELS_CONV2D_DEPTHWISE_INL_H_
#else
#define HEADRACE_KERNELS_CONV2D_DEPTHWISE_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "hwy/highway.h"
#include "kernels/conv2d_f32.h"
#include "kernels/gemm_epilogue-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// A strip of input rows of one channel, padded, in a buffer. With a stride s along x, the columns are sorted by their
// remainder modulo s, so that what neighbouring outputs read is contiguous: column x lies at x % s * phase + x / s.
struct Strip {
    const float* data;
    size_t phase, row;   // distances in floats
};

// Vectors of a row that a block of outputs spans at most; the buffer's rows have room to read them all.
inline constexpr size_t kStripVecs = 4;

size_t padded_columns(const Conv2dArgs& g) { return (g.out_w - 1) * g.stride_w + (g.kernel_w - 1) * g.dilation_w + 1; }
size_t phase_length(const Conv2dArgs& g) {
    return (padded_columns(g) + g.stride_w - 1) / g.stride_w + kStripVecs * kLanes;
}
// Input rows that `rows` rows of output read.
size_t input_rows(const Conv2dArgs& g, size_t rows) { return (rows - 1) * g.stride_h + (g.kernel_h - 1) * g.dilation_h + 1; }

// Rows of output whose input fits the buffer; 0 if not even one does.
size_t strip_rows(const Conv2dArgs& g, size_t capacity) {
    const size_t fitting = capacity / (phase_length(g) * g.stride_w);
    const size_t halo = (g.kernel_h - 1) * g.dilation_h + 1;
    return fitting < halo ? 0 : (fitting - halo) / g.stride_h + 1;
}

// True if groups are so narrow that a matrix product would have almost no rows.
bool is_depthwise(const Conv2dArgs& g) {
    return g.in_channels == g.groups && g.out_channels / g.groups <= 2 && strip_rows(g, 256 * kPanelWidth) > 0;
}

Strip fill_strip(const Conv2dArgs& g, const float* channel, size_t out_row, size_t rows, float* buffer) {
    const size_t phase = phase_length(g), row_size = phase * g.stride_w, columns = padded_columns(g);
    for (size_t r = 0; r < input_rows(g, rows); ++r) {
        float* to = buffer + r * row_size;
        std::memset(to, 0, row_size * sizeof(float));
        const ptrdiff_t y = static_cast<ptrdiff_t>(out_row * g.stride_h + r) - g.pad_top;
        if (y < 0 || y >= static_cast<ptrdiff_t>(g.in_h)) continue;
        const float* from = channel + y * static_cast<ptrdiff_t>(g.in_w);
        // Padded columns [begin, end) lie inside the image.
        const size_t begin = static_cast<size_t>(std::max<ptrdiff_t>(g.pad_left, 0));
        const ptrdiff_t end = std::min(static_cast<ptrdiff_t>(columns), static_cast<ptrdiff_t>(g.in_w) + g.pad_left);
        if (static_cast<ptrdiff_t>(begin) >= end) continue;
        if (g.stride_w == 1) {
            std::memcpy(to + begin, from + begin - g.pad_left, (static_cast<size_t>(end) - begin) * sizeof(float));
            continue;
        }
        for (size_t x = begin; x < static_cast<size_t>(end); ++x)
            to[x % g.stride_w * phase + x / g.stride_w] = from[static_cast<ptrdiff_t>(x) - g.pad_left];
    }
    return {buffer, phase, row_size};
}

// kRows × kVecs vectors of output, from the strip's row of the first output's first tap.
template <size_t kRows, size_t kVecs>
HWY_INLINE void depthwise_block(const Conv2dArgs& g, const Strip& strip, const float* in, const float* w, float bias, float* y,
                                size_t cols) {
    const TileTag d;
    TileVec sum[kRows][kVecs];
    HWY_UNROLL(4)
    for (size_t r = 0; r < kRows; ++r) {
        HWY_UNROLL(4)
        for (size_t v = 0; v < kVecs; ++v) sum[r][v] = hn::Set(d, bias);
    }
    for (size_t ky = 0; ky < g.kernel_h; ++ky) {
        for (size_t kx = 0; kx < g.kernel_w; ++kx) {
            const size_t x = kx * g.dilation_w;
            const float* from = in + ky * g.dilation_h * strip.row + x % g.stride_w * strip.phase + x / g.stride_w;
            const TileVec weight = hn::Set(d, w[ky * g.kernel_w + kx]);
            HWY_UNROLL(4)
            for (size_t r = 0; r < kRows; ++r) {
                HWY_UNROLL(4)
                for (size_t v = 0; v < kVecs; ++v) {
                    const TileVec value = hn::LoadU(d, from + r * g.stride_h * strip.row + v * kLanes);
                    sum[r][v] = hn::MulAdd(weight, value, sum[r][v]);
                }
            }
        }
    }
    HWY_UNROLL(4)
    for (size_t r = 0; r < kRows; ++r) {
        HWY_UNROLL(4)
        for (size_t v = 0; v < kVecs; ++v) {
            float* to = y + r * g.out_w + v * kLanes;
            if (cols >= (v + 1) * kLanes) {
                hn::StoreU(sum[r][v], d, to);
            } else if (cols > v * kLanes) {
                store_first(sum[r][v], d, to, cols - v * kLanes);
            }
        }
    }
}

// Rows of output from a strip that begins with the first of them.
void depthwise_rows(const Conv2dArgs& g, const Strip& strip, const float* w, float bias, size_t rows, float* y) {
    const size_t step = g.stride_h * strip.row;
    for (size_t r = 0; r < rows;) {
        const size_t taken = g.out_w <= 2 * kLanes && r + 4 <= rows ? 4 : 1;
        for (size_t x = 0; x < g.out_w;) {
            const float* in = strip.data + r * step + x;
            float* to = y + r * g.out_w + x;
            const size_t cols = g.out_w - x;
            if (taken == 4) {
                depthwise_block<4, 1>(g, strip, in, w, bias, to, cols), x += kLanes;
            } else if (cols > 2 * kLanes) {
                depthwise_block<1, 4>(g, strip, in, w, bias, to, cols), x += 4 * kLanes;
            } else {
                depthwise_block<1, 2>(g, strip, in, w, bias, to, cols), x += 2 * kLanes;
            }
        }
        r += taken;
    }
}

// Work is dealt out in (image, output channel, strip).
void depthwise(const Conv2dArgs& g, float* buffer, size_t capacity, int ith, int nth) {
    const size_t pixels = g.out_h * g.out_w, planes = g.batch * g.out_channels, taps = g.kernel_h * g.kernel_w;
    if (pixels == 0 || planes == 0) return;
    // More strips than memory asks for where there are too few planes to keep every thread busy.
    const size_t wanted = planes < 4 * static_cast<size_t>(nth) ? 4 * static_cast<size_t>(nth) / planes : 1;
    const size_t per_strip = std::min(strip_rows(g, capacity), (g.out_h + wanted - 1) / wanted);
    const size_t strips = (g.out_h + per_strip - 1) / per_strip;
    const Finish finish_all{.activation = g.activation, .clamp_min = g.clamp_min, .clamp_max = g.clamp_max};
    for (size_t unit = planes * strips * ith / nth; unit < planes * strips * (ith + 1) / nth; ++unit) {
        const size_t plane = unit / strips, image = plane / g.out_channels, out = plane % g.out_channels;
        const size_t row = unit % strips * g.out_h / strips, rows = (unit % strips + 1) * g.out_h / strips - row;
        const size_t in = out / (g.out_channels / g.groups);
        const float* channel = g.x + (image * g.in_channels + in) * g.in_h * g.in_w;
        const size_t offset = plane * pixels + row * g.out_w;
        const Strip strip = fill_strip(g, channel, row, rows, buffer);
        depthwise_rows(g, strip, g.w + out * taps, g.bias ? g.bias[out] : 0.0f, rows, g.y + offset);
        Finish part = finish_all;
        if (g.residual) part.residual = g.residual + offset;
        if (part.needed()) finish(part, 1, rows * g.out_w, g.y + offset, 0);
    }
}

}  // namespace
}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADRACE_KERNELS_CONV2D_DEPTHWISE_INL_H_
