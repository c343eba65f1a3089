// Matrix products with weights that stay in f16 or bf16 in memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/gemm/gemm_f32.h"

namespace headrace::kernels {

// Bytes that pack_half_floats() writes: half of what pack() does for f32.
std::size_t packed_half_float_bytes(std::size_t k, std::size_t n);

// Packs B[k][n], whose elements are f16 or bf16 and lie any strides apart, into panels as pack() does.
// `packed` is aligned to kPackedAlignment.
void pack_half_floats(const std::uint16_t* b, std::ptrdiff_t stride_k, std::ptrdiff_t stride_n, std::size_t k,
                      std::size_t n, std::uint16_t* packed);

// What gemm_f32() computes, where args.packed_b is not read but `packed` is, and widened to exact f32 in
// registers.
void f16_gemm_f32(const GemmArgs& args, const std::uint16_t* packed, bool is_bf16, int ith, int nth);

}  // namespace headrace::kernels
