// Arrays of f32 from and to the 16-bit floats, rounded to nearest, ties to even. NaN stays NaN, with a
// payload of the instruction set's choice.
#pragma once

#include <cstddef>

#include "base/half.h"

namespace headrace::kernels {

// Thread ith's share of n elements; x and y must not overlap.
void convert_f32(const float* x, Half* y, size_t n, int ith, int nth);
void convert_f32(const float* x, BFloat16* y, size_t n, int ith, int nth);
void convert_f32(const Half* x, float* y, size_t n, int ith, int nth);
void convert_f32(const BFloat16* x, float* y, size_t n, int ith, int nth);

}  // namespace headrace::kernels
