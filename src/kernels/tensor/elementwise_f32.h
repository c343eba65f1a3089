// Element-wise f32 functions with polynomial SIMD, accurate to a few ULP over the whole range.
#pragma once

#include <cstddef>

namespace headrace::kernels {

// Worst errors, in units in the last place of the exact result, are asserted in elementwise_f32_test.cpp.
enum class Unary {
    exp,
    log,
    tanh,
    sigmoid,
    erf,
    gelu_erf,
    gelu_tanh,
    silu,
    relu,
    sqrt,
    sin,
    cos,
    softplus,
    hard_swish
};

// y[i] = op(x[i]) for thread ith's contiguous share of n floats; y may be x. NaN gives NaN, infinities give
// the limits; exponentials that are too small for a normal number give 0 within other functions than exp.
void unary_f32(Unary op, const float* x, float* y, size_t n, int ith, int nth);

// y[i] = x[i] where x[i] >= 0, else alpha x[i], the same.
void leaky_relu_f32(float alpha, const float* x, float* y, size_t n, int ith, int nth);

// y[i] = op(gate[i]) * x[i], the same; y may be gate or x.
void gated_f32(Unary op, const float* gate, const float* x, float* y, size_t n, int ith, int nth);

// y = x · cos + r(x) · sin for a row of n floats, where r swaps the halves of the row and negates the first,
// or, if interleaved, swaps the two of each pair and negates the first of them. y must not overlap the
// others.
void rotate_row_f32(const float* x, const float* cos, const float* sin, float* y, size_t n, bool interleaved);

}  // namespace headrace::kernels
