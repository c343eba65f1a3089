// Matrix products with weights that stay quantised in memory.
#pragma once

#include <cstddef>

#include "ir/block_format.h"
#include "kernels/gemm/gemm_f32.h"

namespace headrace::kernels {

// What gemm_f32() computes, where B is not packed but given as rows [n][k] of blocks: k is a multiple of 32.
// A panel of B is expanded to exact f32 in a buffer of each thread, once for all rows that the thread
// computes of it; single rows and pairs multiply what they unpack. Uses 72 KiB of stack.
void block_gemm_f32(const GemmArgs& args, BlockFormat format, const std::byte* b, int ith, int nth);

}  // namespace headrace::kernels
