// Strided copies of up to four dimensions: transposes, permutes, slices, broadcasts.
#pragma once

#include <cstddef>

namespace headrace::kernels {

// dst[Σ i·dst_stride] = src[Σ i·src_stride] for every index i below extent. Strides are in elements; those of
// src may be negative or 0, those of dst must give every index a place of its own. dst must not overlap src.
struct PermuteArgs {
    static constexpr int kRank = 4;
    size_t extent[kRank] = {1, 1, 1, 1};
    const void* src = nullptr;
    ptrdiff_t src_stride[kRank] = {};
    void* dst = nullptr;
    ptrdiff_t dst_stride[kRank] = {};
    size_t element_size = 4;  // bytes: 1, 2, 4 or 8
};

// Runs thread ith's share of nth. Dimensions may come in any order; the cheapest order
// of the walk is found here.
void permute(const PermuteArgs& args, int ith, int nth);

}  // namespace headrace::kernels
