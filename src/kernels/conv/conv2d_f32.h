// 2-D convolution of NCHW f32 activations, as an implicit GEMM over image columns built tile by tile.
#pragma once

#include <cstddef>

#include "kernels/gemm/gemm_f32.h"

namespace headrace::kernels {

// y[b][o][oy][ox] = activation(bias[o] + Σ x[b][g·C/groups + i][oy·stride − pad + ky·dilation][…] ·
// w[o][i][ky][kx]). x, w and y are dense: x [batch][in_channels][in_h][in_w], w
// [out_channels][in_channels/groups][kernel_h][kernel_w], y [batch][out_channels][out_h][out_w]. Padding at
// the end is whatever out_h and out_w reach beyond the input.
struct Conv2dArgs {
    size_t batch = 1, in_channels = 0, in_h = 0, in_w = 0;
    size_t out_channels = 0, out_h = 0, out_w = 0, groups = 1;
    size_t kernel_h = 1, kernel_w = 1;
    size_t stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
    ptrdiff_t pad_top = 0, pad_left = 0;
    const float* x = nullptr;
    const float* w = nullptr;         // plain OIHW: the kernel reads it in place
    const float* bias = nullptr;      // out_channels floats, or null
    const float* residual = nullptr;  // laid out like y, added after the activation unless first; or null
    bool residual_first = false;      // the residual is added before the activation
    float* y = nullptr;               // must not overlap x, w or residual
    bool channels_last_y =
        false;  // y and residual are [batch][out_h][out_w][out_channels]; some kernels only
    Activation activation = Activation::none;
    float clamp_min = 0, clamp_max = 0;  // read by Activation::clamp only
};

// True if the image, as it lies in memory, is the matrix of image columns.
inline bool is_pointwise(const Conv2dArgs& g) {
    return g.kernel_h == 1 && g.kernel_w == 1 && g.stride_h == 1 && g.stride_w == 1 && g.pad_top == 0 &&
           g.pad_left == 0 && g.out_h == g.in_h && g.out_w == g.in_w;
}

// The same convolution, a pointwise one, with each image as one row.
inline Conv2dArgs flattened(const Conv2dArgs& g) {
    Conv2dArgs flat = g;
    flat.in_w = flat.out_w = g.out_h * g.out_w;
    flat.in_h = flat.out_h = 1;
    return flat;
}

// Runs thread ith's share of nth, split over images, groups, pixels and output channels.
// Uses up to 100 KiB of stack.
void conv2d_f32(const Conv2dArgs& args, int ith, int nth);

}  // namespace headrace::kernels
