// Products of a few rows with a matrix that stays as it is in memory: f32, 16-bit floats, or affine codes.
// Each weight is read once, so that memory sets the pace; gemm_f32.h is for more rows.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace::kernels {

// y[row][j] = sum over l of x[row][l] · w[j][l], for every row and j < n. Rows of x and y follow one another.
struct GemvArgs {
    const float* x;
    float* y;
    std::size_t rows, n, k;
    std::ptrdiff_t ldy;  // from a row of y to the next
};

// Rows of w are `stride` elements apart.
void gemv_f32(const GemvArgs& args, const float* w, std::ptrdiff_t stride);
void gemv_half(const GemvArgs& args, const std::uint16_t* w, std::ptrdiff_t stride, bool is_bf16);

// Values scale · code + bias: codes of `bits` bits (4, 5 or 8), one after the other from the lowest bit on,
// and a scale and a bias for each kAffineGroup of them. Without biases, a bias is -offset · scale.
struct AffineMatrix {
    const std::uint8_t* codes;
    const float* scales;
    const float* biases;
    float offset;
    int bits;
    std::ptrdiff_t code_stride, scale_stride;  // from row to row: bytes, and scales or biases
};
inline constexpr std::size_t kAffineGroup = 32;

// k is a multiple of kAffineGroup.
void gemv_affine(const GemvArgs& args, const AffineMatrix& w);

}  // namespace headrace::kernels
