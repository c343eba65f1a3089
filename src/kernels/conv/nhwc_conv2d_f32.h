// 2-D convolution of f32 images with channels last, with filters that are packed once.
#pragma once

#include <cstddef>

#include "kernels/conv/conv2d_f32.h"

namespace headrace::kernels {

// What conv2d_f32() computes, where the channels of a pixel are neighbours: x
// [batch][in_h][in_w][in_channels], y and residual [batch][out_h][out_w][out_channels]. args.w is not read
// but `packed` is, which pack_filters() makes of filters whose depth is ordered
// [kernel_h][kernel_w][in_channels / groups]. Runs thread ith's share of nth, split over images, groups,
// pixels and output channels. Keeps for each thread where a strip of at most 96 pixels meets the input.
void nhwc_conv2d_f32(const Conv2dArgs& args, const float* packed, int ith, int nth);

// The same for groups of one channel each, in and out: args.w is read, [kernel_h][kernel_w][channels].
void nhwc_depthwise_conv2d_f32(const Conv2dArgs& args, int ith, int nth);

}  // namespace headrace::kernels
