// 2-D convolution of f32 images with channels last by the processor's own products of bf16.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/conv/conv2d_f32.h"

namespace headrace::kernels {

// All of it needs has_bf16_gemm(): where that says no, nothing below may be called.

// Bytes that pack_bf16_filters() writes; k is in_channels / groups · kernel_h · kernel_w.
size_t packed_bf16_filter_bytes(size_t out_channels, size_t groups, size_t k);

// Packs w [out_channels][k], whose depth is ordered [kernel_h][kernel_w][in_channels / groups], rounded.
void pack_bf16_filters(const float* w, size_t out_channels, size_t groups, size_t k, uint16_t* packed);

// What nhwc_conv2d_f32() computes, where pixels are rounded to bf16 as bf16_gemm_f32() rounds rows, and
// `packed` comes from pack_bf16_filters(). Runs thread ith's share of nth, split over groups, pixels and
// output channels; keeps what that does, and throws std::bad_alloc as that does.
void nhwc_bf16_conv2d(const Conv2dArgs& args, const uint16_t* packed, int ith, int nth);

// Bytes that pack_bf16_winograd_filters() writes, for windows that has_nhwc_winograd_conv2d() knows.
// in_channels are those of a group.
size_t packed_bf16_winograd_filter_bytes(size_t in_channels, size_t out_channels, size_t groups);

// Packs w [3][3][in_channels][out_channels], transformed and rounded.
void pack_bf16_winograd_filters(const float* w, size_t in_channels, size_t out_channels, size_t groups,
                                uint16_t* packed);

// What nhwc_winograd_conv2d_f32() computes, with what it multiplies rounded to bf16. Tiles that meet NaN or
// infinity are computed window by window from f32 pixels and `packed`.
void nhwc_bf16_winograd_conv2d(const Conv2dArgs& args, const uint16_t* packed, int ith, int nth);

}  // namespace headrace::kernels
