// Positions of extreme elements.
#pragma once

#include <cstddef>

namespace headrace::kernels {

// The first position of the largest or else the smallest of n > 0 neighbours, or of the first NaN.
size_t arg_extreme_f32(bool is_largest, const float* x, size_t n);

}  // namespace headrace::kernels
