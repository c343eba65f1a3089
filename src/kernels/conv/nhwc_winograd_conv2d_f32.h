// 3 × 3 convolution of f32 images with channels last by Winograd's minimal filtering: 16 products for 4
// outputs in place of 36.
#pragma once

#include <cstddef>

#include "kernels/conv/conv2d_f32.h"

namespace headrace::kernels {

// Whether it is worth the larger filters and the transformations: windows that it can compute, enough
// channels, and enough pixels to share the filters. Reads shapes only.
bool has_nhwc_winograd_conv2d(const Conv2dArgs& shape);

// Floats that pack_winograd_filters() writes: 16 for each pair of channels, where filters have 9. in_channels
// are those of a group.
size_t packed_winograd_filters_size(size_t in_channels, size_t out_channels, size_t groups);

// Packs filters [kernel_h][kernel_w][in_channels][out_channels] of 3 × 3. Aligned to kPackedAlignment.
void pack_winograd_filters(const float* w, size_t in_channels, size_t out_channels, size_t groups,
                           float* packed);

// What nhwc_conv2d_f32() computes with windows of 3 × 3, steps and distances of 1; rounding
// errors are about twice as large, and relative to the largest of the 4 × 4 pixels that share a tile. NaN and
// infinity stay in the windows that meet them. Runs thread ith's share of nth, split over groups, images and
// pixels. Keeps for each thread about 1 MiB.
void nhwc_winograd_conv2d_f32(const Conv2dArgs& args, const float* packed, int ith, int nth);

}  // namespace headrace::kernels
