// Transposed 2-D convolution of f32 images with their channels first.
#pragma once

#include <cstddef>

namespace headrace::kernels {

// y[n, o, iy · stride + ky · dilation − pad, ix · …] += x[n, i, iy, ix] · w[i, o, ky, kx] over all i of o's
// group, on top of the bias.
struct ConvTranspose2dArgs {
    size_t batch = 1, in_channels = 0, in_h = 0, in_w = 0;
    size_t out_channels = 0, out_h = 0, out_w = 0, groups = 1;
    size_t kernel_h = 1, kernel_w = 1;
    size_t stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
    ptrdiff_t pad_top = 0, pad_left = 0;  // rows and columns that are cut off
    const float* x = nullptr;             // [batch][in_channels][in_h][in_w]
    const float* w = nullptr;             // [in_channels][out_channels / groups][kernel_h][kernel_w]
    const float* bias = nullptr;          // out_channels floats, or null
    float* y = nullptr;  // [batch][out_channels][out_h][out_w]; must not overlap x, w or bias

    size_t group_inputs() const { return in_channels / groups; }
    size_t group_outputs() const { return out_channels / groups; }
    size_t taps() const { return kernel_h * kernel_w; }

    // Whether each element of the output is one product: the filters of neighbouring pixels lie side by side
    // and leave nothing out.
    bool tiles() const {
        return kernel_h == stride_h && kernel_w == stride_w && dilation_h == 1 && dilation_w == 1 &&
               pad_top == 0 && pad_left == 0 && out_h == in_h * stride_h && out_w == in_w * stride_w;
    }
};

// Runs thread ith's share of nth: some channels of the output. Keeps some 128 KiB for products, of large
// filters up to 4 MiB, and the share's filters in another order.
void conv_transpose2d_f32(const ConvTranspose2dArgs& args, int ith, int nth);

}  // namespace headrace::kernels
