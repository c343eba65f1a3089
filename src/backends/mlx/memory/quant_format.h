#pragma once
#include <cstddef>
#include <cstdint>

#include "ggml.h"

namespace headrace::mlx {

/// A block format of ggml that MLX computes with as it is, once its bits are in MLX's order.
///
/// Affine formats become w = scale * code + bias with f32 scales and biases for each 32 values: exact, where
/// ggml's f16 ones would make MLX convert them in every call, and 128 times an f16 may overflow. The
/// microscaling formats keep their 8-bit scales.
struct QuantFormat {
    ggml_type type;
    int bits;          ///< of a code
    int group;         ///< values that share a scale
    const char* mode;  ///< MLX's name: affine, mxfp4 or nvfp4
    int block;         ///< values in a ggml block
    int header;  ///< bytes of a block kept to give it back: K-quants' scales are products of two numbers
    int offset;  ///< a bias is -offset * scale; 0 where it is a number of its own

    bool is_affine() const { return mode[0] == 'a'; }
    /// MLX's own kernels take a bias for each scale; the CPU's loop, which it has instead, only where it
    /// must.
    bool has_biases() const;
    std::size_t scale_bytes() const { return is_affine() ? 4 : 1; }
    std::size_t code_bytes(std::int64_t values) const { return static_cast<std::size_t>(values) * bits / 8; }
    std::size_t scales(std::int64_t values) const { return static_cast<std::size_t>(values) / group; }
};

/// The format of a type that is repacked, or null.
const QuantFormat* quant_format(ggml_type type);

/// Where the parts of a repacked tensor lie, in bytes from its address.
struct PackedLayout {
    std::size_t scales, biases, headers, end;
};
PackedLayout packed_layout(const QuantFormat& format, std::int64_t values);

/// Repacks `blocks` of ggml's blocks as the tensor's blocks from `first` on; `values` are the tensor's.
void pack_blocks(const QuantFormat& format, const void* blocks, std::int64_t first, std::int64_t count,
                 void* tensor, std::int64_t values);
/// The inverse: every byte as pack_blocks was given it.
void unpack_blocks(const QuantFormat& format, const void* tensor, std::int64_t values, std::int64_t first,
                   std::int64_t count, void* blocks);
/// f32 values of the tensor's blocks, as ggml's own conversion gives them.
void dequantize_blocks(const QuantFormat& format, const void* tensor, std::int64_t values, std::int64_t first,
                       std::int64_t count, float* out);

}  // namespace headrace::mlx
