// Real numbers as integers of 8 bits by one scale and zero point, and back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/int8/requantization.h"

namespace headrace::kernels {

// y[i] = x[i] / scale, rounded half to even, plus zero, saturated; NaN gives the lowest. Runs thread ith's
// share of nth, as all here do.
void quantize_f32(const float* x, float scale, int32_t zero, void* y, bool is_signed, size_t n, int ith,
                  int nth);

// The scale and zero point by which u8 hold all of x, and 0 exactly: (highest - lowest) / 255, or 1 where
// that is 0. NaN among them makes the scale NaN.
struct ByteRange {
    float scale;
    uint8_t zero;
};
ByteRange byte_range_of(float lowest, float highest);

// quantize_f32() by that. Each thread looks at all of x; the first stores the scale and the zero point.
void quantize_by_range_f32(const float* x, uint8_t* y, float* scale, uint8_t* zero, size_t n, int ith,
                           int nth);

// y[i] = (x[i] - zero) * scale
void dequantize_f32(const Bytes& x, float scale, int32_t zero, float* y, size_t n, int ith, int nth);

// y[i] = a[i] * a_ratio + (b[i] * b_ratio + shift), rounded half to even, within [low, high]: the ratios are
// those of the operands' scales to the result's, the shift is what the zero points come to.
struct Int8AddArgs {
    Bytes a, b;
    float a_ratio = 1, b_ratio = 1, shift = 0;
    int32_t low = 0, high = 255;
    void* y = nullptr;
    bool is_signed = false;  // y's
    size_t n = 0;
};
void int8_add(const Int8AddArgs& args, int ith, int nth);

}  // namespace headrace::kernels
