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

// As int8_depthwise_conv2d(), for windows of 3 x 3 whose pixels lie side by side, one or two apart.
constexpr bool has_quad_depthwise(const Int8Conv2dArgs& g) {
    return g.kernel_h == 3 && g.kernel_w == 3 && g.dilation_w == 1 && g.stride_w <= 2;
}
// Channels that are summed up together where so many are left: 64, and of the last as few as hold them.
constexpr size_t depthwise_block(size_t left) { return left <= 16 ? 16 : left <= 32 ? 32 : 64; }

// Packs w [channels][3][3] in blocks of channels: for each column of taps the quads of its three and a zero,
// in the order of bytes that are interleaved within blocks of 16, and the sums in that order.
size_t packed_depthwise_quads_bytes(size_t channels);
void pack_depthwise_quads(const int8_t* w, size_t channels, std::byte* packed);
// Keeps for each thread a row of the image.
void quad_depthwise_conv2d(const Int8Conv2dArgs& args, const std::byte* packed, int ith, int nth);

}  // namespace headrace::kernels
