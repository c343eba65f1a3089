// Convolutions and products of bytes by the processor's own sums of four products, which are exact.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/int8/int8_conv2d.h"
#include "kernels/int8/int8_matmul.h"

namespace headrace::kernels {

// Whether this processor has them, and the kernels of its instruction set are in use. Where not, nothing
// below may be called.
bool has_byte_quads();

// Bytes that pack_quads() writes; k is what one output sums up.
size_t packed_quads_bytes(size_t out_channels, size_t groups, size_t k);

// Packs w [out_channels][k] as pack_pairs() does, four neighbours along k together: [k / 4][16][4], and the
// sums.
void pack_quads(const int8_t* w, size_t out_channels, size_t groups, size_t k, std::byte* packed);

// As int8_conv2d() and int8_matmul(), with `packed` of pack_quads(); args.is_wide is false. Keep at most 48
// rows for each thread, as bytes.
void quad_conv2d(const Int8Conv2dArgs& args, const std::byte* packed, int ith, int nth);
void quad_matmul(const Int8MatMulArgs& args, const std::byte* packed, int ith, int nth);

}  // namespace headrace::kernels
