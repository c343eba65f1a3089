// Transposed 2-D convolution of f32 images with their channels last.
#pragma once

#include <array>
#include <cstddef>

#include "kernels/conv/conv_transpose2d_f32.h"

namespace headrace::kernels {

// Bytes that pack_transposed_filters() writes. Channels, groups and kernel of the arguments are read.
size_t packed_transposed_filters_bytes(const ConvTranspose2dArgs& args);

// Packs the filters, whose input channels, output channels of a group, rows and columns lie `strides` floats
// apart, for products with rows of pixels: for each group and filter row a matrix [group_inputs][kernel_w ·
// group_outputs] as pack() makes it. `packed` is aligned to kPackedAlignment.
void pack_transposed_filters(const ConvTranspose2dArgs& args, const float* filter,
                             const std::array<ptrdiff_t, 4>& strides, float* packed);

// What conv_transpose2d_f32() computes, where x and y have their channels last, args.w is not read but
// `packed` is. Runs thread ith's share of nth: some rows of the output. Keeps up to 128 KiB for each thread.
void nhwc_conv_transpose2d_f32(const ConvTranspose2dArgs& args, const float* packed, int ith, int nth);

}  // namespace headrace::kernels
