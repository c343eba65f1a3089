// Convolutions of integers with channels last, and products of matrices of them, which are convolutions
// of images of one row.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/int8/pair_panels.h"
#include "kernels/int8/requantization.h"

namespace headrace::kernels {

// y[b][oy][ox][o] is what `result` makes of Σ (x[b][oy·stride − pad + ky·dilation][…][i] − x_zero) ·
// w[o][ky][kx][i]; beyond the image x is x_zero. Sums have 32 bits and wrap.
struct Int8Conv2dArgs {
    size_t batch = 1, in_channels = 0, in_h = 1, in_w = 0;
    size_t out_channels = 0, out_h = 1, out_w = 0, groups = 1;
    size_t kernel_h = 1, kernel_w = 1;
    size_t stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
    ptrdiff_t pad_top = 0, pad_left = 0;
    Bytes x;
    int32_t x_zero = 0;
    Requantization result;

    size_t depth() const { return in_channels / groups * kernel_h * kernel_w; }
};

// Whether sums of so many products of 16 and 8 bits with a zero point fit in 32 bits, where a filter's
// numbers are at most 255.
constexpr bool have_room(size_t depth) { return depth <= (size_t{1} << 31) / (255 * 255); }

// `packed` is of pack_pairs(), of filters [out_channels][kernel_h][kernel_w][in_channels / groups]. Runs
// thread ith's share of nth, split over images, groups, pixels and output channels. Keeps for each thread
// what at most 48 pixels of the output meet, in 16 bits.
void int8_conv2d(const Int8Conv2dArgs& args, const std::byte* packed, int ith, int nth);

// Each channel alone: groups, in_channels and out_channels are equal. `packed` is of pack_depthwise_pairs().
// Keeps for each thread a row of the output's input, twice.
void int8_depthwise_conv2d(const Int8Conv2dArgs& args, const std::byte* packed, int ith, int nth);

}  // namespace headrace::kernels
