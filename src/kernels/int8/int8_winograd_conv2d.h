// 3 × 3 convolution of bytes with channels last by Winograd's minimal filtering: 16 products for 4 outputs in
// place of 36, in whole numbers and so exactly.
#pragma once

#include <cstddef>

#include "kernels/int8/int8_conv2d.h"

namespace headrace::kernels {

// Whether it is worth the larger filters and the transformations: windows that it can compute, enough
// channels, and enough pixels to share the filters. Reads shapes only.
bool has_int8_winograd_conv2d(const Int8Conv2dArgs& shape);

// Bytes that pack_int8_winograd() writes: 16 numbers of 16 bits for each pair of channels.
size_t packed_int8_winograd_bytes(size_t in_channels, size_t out_channels);

// Transforms and packs filters [out_channels][3][3][in_channels].
template <class T>
void pack_int8_winograd(const T* w, size_t in_channels, size_t out_channels, std::byte* packed);

// As int8_conv2d(), for shapes of has_int8_winograd_conv2d(). Runs thread ith's share of nth, split over
// tiles of 2 × 2 pixels and output channels. Keeps for each thread what at most 48 tiles read, in 16 bits, 16
// times.
void int8_winograd_conv2d(const Int8Conv2dArgs& args, const std::byte* packed, int ith, int nth);

}  // namespace headrace::kernels
