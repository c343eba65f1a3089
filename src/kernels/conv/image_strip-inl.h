// Padded copies of some rows of an image. Included once per SIMD target.
#if defined(HEADRACE_KERNELS_IMAGE_STRIP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_KERNELS_IMAGE_STRIP_INL_H_
#undef HEADRACE_KERNELS_IMAGE_STRIP_INL_H_
#else
#define HEADRACE_KERNELS_IMAGE_STRIP_INL_H_
#endif

#include <algorithm>
#include <cstddef>

#include "hwy/highway.h"
#include "kernels/conv/conv2d_f32.h"
#include "kernels/simd/memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// A strip of input rows of one channel, padded, in a buffer. With a stride s along x, the columns are
// sorted by their remainder modulo s, so that what neighbouring outputs read is contiguous: column x lies
// at x % s * phase + x / s.
struct PhasedStrip {
    const float* data;
    size_t phase, row;  // distances in floats
};

// Floats of one phase of a row: the outputs in whole vectors and the reach of the kernel beyond them.
HWY_INLINE HWY_MAYBE_UNUSED size_t phase_length(const Conv2dArgs& g) {
    const size_t reach = (g.kernel_w - 1) * g.dilation_w / g.stride_w;
    return divide_up(divide_up(g.out_w, kLanes) * kLanes + reach, kLanes) * kLanes;
}

// Input rows that `rows` rows of output read.
HWY_INLINE HWY_MAYBE_UNUSED size_t input_rows(const Conv2dArgs& g, size_t rows) {
    return (rows - 1) * g.stride_h + (g.kernel_h - 1) * g.dilation_h + 1;
}

HWY_INLINE HWY_MAYBE_UNUSED PhasedStrip fill_strip(const Conv2dArgs& g, const float* channel, size_t out_row,
                                                   size_t rows, float* buffer) {
    const TileTag d;
    const size_t phase = phase_length(g), row_size = phase * g.stride_w;
    const ptrdiff_t stride = static_cast<ptrdiff_t>(g.stride_w), width = static_cast<ptrdiff_t>(g.in_w);
    for (size_t r = 0; r < input_rows(g, rows); ++r) {
        float* to = buffer + r * row_size;
        for (size_t i = 0; i < row_size; i += kLanes) hn::StoreU(hn::Zero(d), d, to + i);
        const ptrdiff_t y = static_cast<ptrdiff_t>(out_row * g.stride_h + r) - g.pad_top;
        if (y < 0 || y >= static_cast<ptrdiff_t>(g.in_h)) continue;
        for (ptrdiff_t p = 0; p < stride; ++p) {
            // Padded column i * stride + p is the image's column i * stride + first.
            const ptrdiff_t first = p - g.pad_left;
            const ptrdiff_t begin = first < 0 ? (-first + stride - 1) / stride : 0;
            const ptrdiff_t end = width > first ? (width - 1 - first) / stride + 1 : 0;
            const ptrdiff_t count = std::min(end, static_cast<ptrdiff_t>(phase)) - begin;
            if (count <= 0) continue;
            copy_strided(channel + y * width + begin * stride + first, g.stride_w, static_cast<size_t>(count),
                         to + p * static_cast<ptrdiff_t>(phase) + begin);
        }
    }
    return {buffer, phase, row_size};
}

}  // namespace
}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADRACE_KERNELS_IMAGE_STRIP_INL_H_
