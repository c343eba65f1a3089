// Matrix products in 8-bit integers with weights that stay quantised in memory.
#pragma once

#include <cstddef>

#include "ir/block_format.h"
#include "kernels/gemm/gemm_f32.h"

namespace headrace::kernels {

// Whether this CPU multiplies bytes fast (AVX2, AVX-512 or 64-bit NEON) and the format is one of q8_0, q4_0,
// q4_1, q4_k or of those with scales in f32.
bool has_block_gemm_int8(BlockFormat format);

// Ways of multiplying bytes that this CPU's best instruction set has; 0 where there is none.
int int8_variants();

// Bytes that pack_blocks() writes: those of the blocks; q4_k takes a third more. n is rounded up to 16.
size_t packed_blocks_bytes(BlockFormat format, size_t k, size_t n);

// Packs rows [n][k] of blocks into panels of 64 columns, for each 32 elements of k: codes, four neighbours in
// k side by side, then scales, then minima. Aligned to kPackedAlignment.
void pack_blocks(BlockFormat format, const std::byte* b, size_t k, size_t n, std::byte* packed);

// What gemm_f32() computes, where args.packed_b is not read but `packed` is, and where A is rounded: each 32
// elements of a row to 8 bits and a scale, as ggml's own products with blocks do. A row with a NaN or
// infinity gives NaN. Only where has_block_gemm_int8(). Uses 64 KiB of stack and keeps up to 1 MiB for each
// thread.
void block_gemm_int8(const GemmArgs& args, BlockFormat format, const std::byte* packed, int ith, int nth);

// The same in one of int8_variants(): 0, the fastest, is what the other takes; the rest are for lesser CPUs.
void block_gemm_int8_in(int variant, const GemmArgs& args, BlockFormat format, const std::byte* packed,
                        int ith, int nth);

}  // namespace headrace::kernels
