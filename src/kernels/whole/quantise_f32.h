// Real numbers as whole ones of 8 bits by one scale and zero point, and back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/whole/requantisation.h"

namespace headrace::kernels {

// y[i] = x[i] / scale, rounded half to even, plus zero, saturated; NaN gives the lowest. Runs thread ith's
// share of nth, as all here do.
void quantise_f32(const float* x, float scale, int32_t zero, void* y, bool is_signed, size_t n, int ith,
                  int nth);

// y[i] = (x[i] - zero) * scale
void dequantise_f32(const Bytes& x, float scale, int32_t zero, float* y, size_t n, int ith, int nth);

// A whole number and the real ones that it stands for.
struct Scaled {
    Bytes x;
    float scale = 1;
    int32_t zero = 0;
};

// y[i] = a[i] + b[i] as real numbers, divided by y_scale and rounded half to even, plus zero, within [low,
// high].
struct WholeAddArgs {
    Scaled a, b;
    float y_scale = 1;
    int32_t y_zero = 0, low = 0, high = 255;
    void* y = nullptr;
    bool is_signed = false;  // y's
    size_t n = 0;
};
void whole_add(const WholeAddArgs& args, int ith, int nth);

}  // namespace headrace::kernels
