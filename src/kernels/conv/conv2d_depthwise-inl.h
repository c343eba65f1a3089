// Depthwise convolution: small square windows read the input where it lies, all others a padded copy of some
// rows. Included once per SIMD target, by conv2d_f32.cpp.
#if defined(HEADRACE_KERNELS_CONV2D_DEPTHWISE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_KERNELS_CONV2D_DEPTHWISE_INL_H_
#undef HEADRACE_KERNELS_CONV2D_DEPTHWISE_INL_H_
#else
#define HEADRACE_KERNELS_CONV2D_DEPTHWISE_INL_H_
#endif

#include <algorithm>
#include <cstddef>

#include "hwy/highway.h"
#include "kernels/conv/conv2d_depthwise_in_place-inl.h"
#include "kernels/conv/conv2d_f32.h"
#include "kernels/conv/image_strip-inl.h"
#include "kernels/gemm/gemm_epilogue-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Rows of output whose input fits the buffer; 0 if not even one does.
size_t strip_rows(const Conv2dArgs& g, size_t capacity) {
    const size_t fitting = capacity / (phase_length(g) * g.stride_w);
    return fitting < input_rows(g, 1) ? 0 : (fitting - input_rows(g, 1)) / g.stride_h + 1;
}

// True if groups are so narrow that a matrix product would have almost no rows.
bool is_depthwise(const Conv2dArgs& g, size_t capacity) {
    return g.in_channels == g.groups && g.out_channels / g.groups <= 2 &&
           (find_in_place(g, 1) || strip_rows(g, capacity) > 0);
}

// kRows × kVecs vectors of output at y, from the strip's row and column of their first tap.
template <size_t kRows, size_t kVecs>
HWY_INLINE void depthwise_block(const Conv2dArgs& g, const PhasedStrip& strip, const float* in,
                                const float* w, float bias, float* y, size_t cols) {
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
            const float* from = in + ky * g.dilation_h * strip.row;
            from += g.stride_w == 1 ? x : x % g.stride_w * strip.phase + x / g.stride_w;
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
        for (size_t v = 0; v + 1 < kVecs; ++v) hn::StoreU(sum[r][v], d, y + r * g.out_w + v * kLanes);
        constexpr size_t kLast = (kVecs - 1) * kLanes;
        if (cols >= kLast + kLanes) {
            hn::StoreU(sum[r][kVecs - 1], d, y + r * g.out_w + kLast);
        } else {
            store_first(sum[r][kVecs - 1], d, y + r * g.out_w + kLast, cols - kLast);
        }
    }
}

// Rows of output from a strip that begins with the first of them. Blocks of about four vectors hide the
// latency of the multiply-adds: along the row where it is long enough, over several rows where it is short.
void depthwise_rows(const Conv2dArgs& g, const PhasedStrip& strip, const float* w, float bias, size_t rows,
                    float* y) {
    for (size_t x = 0; x < g.out_w;) {
        const size_t cols = g.out_w - x, vecs = std::min<size_t>(divide_up(cols, kLanes), 4);
        for (size_t r = 0; r < rows;) {
            const float* in = strip.data + r * g.stride_h * strip.row + x;
            float* to = y + r * g.out_w + x;
            const size_t left = rows - r;
            if (vecs == 4) {
                depthwise_block<1, 4>(g, strip, in, w, bias, to, cols), r += 1;
            } else if (vecs == 3) {
                depthwise_block<1, 3>(g, strip, in, w, bias, to, cols), r += 1;
            } else if (vecs == 2) {
                if (left >= 2)
                    depthwise_block<2, 2>(g, strip, in, w, bias, to, cols), r += 2;
                else
                    depthwise_block<1, 2>(g, strip, in, w, bias, to, cols), r += 1;
            } else if (left >= 4) {
                depthwise_block<4, 1>(g, strip, in, w, bias, to, cols), r += 4;
            } else if (left >= 2) {
                depthwise_block<2, 1>(g, strip, in, w, bias, to, cols), r += 2;
            } else {
                depthwise_block<1, 1>(g, strip, in, w, bias, to, cols), r += 1;
            }
        }
        x += vecs * kLanes;
    }
}

void depthwise(const Conv2dArgs& g, float* buffer, size_t capacity, int ith, int nth) {
    if (const InPlaceFn in_place = find_in_place(g, nth)) return in_place(g, ith, nth);
    for_each_plane(g, strip_rows(g, capacity), ith, nth, [&](const PlaneRows& plane) HWY_ATTR {
        const size_t rows = plane.row_end - plane.row;
        const PhasedStrip strip = fill_strip(g, plane.x, plane.row, rows, buffer);
        depthwise_rows(g, strip, plane.w, plane.bias, rows, g.y + plane.offset);
        finish_rows(g, plane);
    });
}

}  // namespace
}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADRACE_KERNELS_CONV2D_DEPTHWISE_INL_H_
