// Products of matrices of bytes with constant ones of integers, whose sums stay or become bytes or real
// numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "kernels/gemm/gemm_f32.h"
#include "kernels/int8/pair_panels.h"
#include "kernels/int8/requantization.h"

namespace headrace::kernels {

// y = activation(sum * (factor * scale[c]) + bias[c]) + residual, c being the column; m rows of n numbers.
struct RealSums {
    const float* bias = nullptr;  // null: none
    const float* scale = nullptr;
    float factor = 1;
    Activation activation = Activation::none;
    const float* residual = nullptr;  // null: none
    float* y = nullptr;
};

// Σ (a[i][·] − a_zero) · b[·][j] for rows a [m][k]; sums have 32 bits and wrap.
struct Int8MatMulArgs {
    size_t m = 0, n = 0, k = 0;
    Bytes a;
    int32_t a_zero = 0;
    bool is_wide = false;                                     // b is packed in 16 bits
    std::variant<int32_t*, Requantization, RealSums> result;  // a pointer: the sums as they are
};

// `packed` is of pack_pairs(), of b's columns [n][k], in 8 or 16 bits. Runs thread ith's share of nth, split
// over rows and columns. Keeps at most 48 rows of a for each thread, in 16 bits.
void int8_matmul(const Int8MatMulArgs& args, const std::byte* packed, int ith, int nth);

}  // namespace headrace::kernels
