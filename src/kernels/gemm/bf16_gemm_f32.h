// Dense products with bf16 matrices that are packed ahead of time, by the processor's own products of bf16.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/gemm/gemm_f32.h"

namespace headrace::kernels {

// Whether this processor multiplies bf16, and the kernels of its instruction set are in use. Where not,
// nothing below may be called.
bool has_bf16_gemm();

// Bytes that pack_bf16() writes for B[k][n]: pairs of k, n rounded up to 16.
size_t packed_bf16_bytes(size_t k, size_t n);

// Packs B[k][n] of bf16, with strides in elements, into panels of 64 columns; each row of a panel holds two
// of B, in which a column's two elements are neighbours. The last is filled up with zeros where k is odd.
void pack_bf16(const uint16_t* b, ptrdiff_t stride_k, ptrdiff_t stride_n, size_t k, size_t n,
               uint16_t* packed);

// The same of f32, which is rounded to bf16 as A is below. Either stride_k or stride_n is 1.
void pack_as_bf16(const float* b, ptrdiff_t stride_k, ptrdiff_t stride_n, size_t k, size_t n,
                  uint16_t* packed);

// What gemm_f32() computes, where A is rounded to bf16 (to the nearest, ties to even; numbers below the
// normal ones count as zero) and `packed` is read in the place of args.packed_b. Twice as fast as products in
// f32. Runs thread ith's share of nth. Keeps for each thread the rounded elements of some rows: 400 KiB, or
// six rows; throws std::bad_alloc where there is no memory for them.
void bf16_gemm_f32(const GemmArgs& args, const uint16_t* packed, int ith, int nth);

}  // namespace headrace::kernels
