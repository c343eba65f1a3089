// Integers of 8 bits that stand for real numbers: how sums of their products become such numbers again.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace::kernels {

// Elements of 8 bits, with a sign or without.
struct Bytes {
    const void* data = nullptr;
    bool is_signed = false;
};

// y = min(max(round((sum + bias[c]) * scale[c]) + zero, low), high), rounded half to even; c is the output
// channel. All steps are in single precision and none is fused, so that every instruction set gives the same.
struct Requantization {
    const float* bias = nullptr;  // null: none
    const float* scale = nullptr;
    int32_t zero = 0, low = 0, high = 255;  // low and high in the range of y's type, zero between them or not
    void* y = nullptr;
    bool is_signed = false;  // y's
};

}  // namespace headrace::kernels
