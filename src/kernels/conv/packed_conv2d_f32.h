// 2-D convolution of NCHW f32 activations with filters that are packed once.
#pragma once

#include <cstddef>

#include "kernels/conv/conv2d_f32.h"

namespace headrace::kernels {

// Output channels of a group in one panel of packed filters.
inline constexpr size_t kFilterPanel = 16;

// Whether packed filters are worth their padding: a group has no few output channels. Where not, conv2d_f32()
// is faster.
bool has_packed_conv2d(size_t out_channels, size_t groups);

// Floats that pack_filters() writes; k is in_channels / groups · kernel_h · kernel_w.
size_t packed_filters_size(size_t out_channels, size_t groups, size_t k);

// Packs w [out_channels][k] into panels of 16 output channels of a group, [k][16] each. Aligned to
// kPackedAlignment.
void pack_filters(const float* w, size_t out_channels, size_t groups, size_t k, float* packed);

// What conv2d_f32() computes, where args.w is not read but `packed` is; args.channels_last_y is followed.
// Runs thread ith's share of nth, split over images, groups, pixels and output channels. Uses 32 KiB of
// stack, and keeps for each thread a piece of the input: the rows that at most 96 pixels of the output meet.
void packed_conv2d_f32(const Conv2dArgs& args, const float* packed, int ith, int nth);

}  // namespace headrace::kernels
