#pragma once
// The operations of ggml-mlx.h as expressions of MLX: each takes any mix of ggml tensors and MLX arrays and returns an
// array that is not computed yet, so that
//
//     ggml_mlx::store(ggml_mlx::add(ggml_mlx::mul_mat(a, b), d), e);
//
// computes, and writes, once. Link libmlx and libggml-mlx. As all of MLX's, an expression is computed in the thread that
// built it: in another one MLX throws std::runtime_error.
#include <mlx/array.h>

#include <utility>
#include <variant>
#include <vector>

#include "headrace/ggml-mlx.h"

namespace ggml_mlx {

using mlx::core::array;

/// A tensor or an array. A tensor in memory of the MLX device is read when the expression is computed, any other when
/// it is built. An array's axes are in MLX's order: its last one is
/// ggml's first dimension. At most four axes.
class Operand {
public:
    Operand(const ggml_tensor* tensor) : value_(tensor) {}
    Operand(array value) : value_(std::move(value)) {}

    const std::variant<const ggml_tensor*, array>& value() const { return value_; }

private:
    std::variant<const ggml_tensor*, array> value_;
};

// All throw std::invalid_argument for operands that do not go together. A result has as many axes as the operand with
// the most; a tensor counts its dimensions without trailing ones.

GGML_MLX_API array mul_mat(const Operand& src0, const Operand& src1);
GGML_MLX_API array add(const Operand& src0, const Operand& src1);
GGML_MLX_API array sub(const Operand& src0, const Operand& src1);
GGML_MLX_API array mul(const Operand& src0, const Operand& src1);
GGML_MLX_API array div(const Operand& src0, const Operand& src1);
GGML_MLX_API array relu(const Operand& src);
GGML_MLX_API array gelu(const Operand& src);
GGML_MLX_API array silu(const Operand& src);
GGML_MLX_API array soft_max(const Operand& src);
GGML_MLX_API array norm(const Operand& src, float eps);
GGML_MLX_API array rms_norm(const Operand& src, float eps);
GGML_MLX_API array flash_attn(const Operand& q, const Operand& k, const Operand& v, float scale);
GGML_MLX_API array flash_attn(const Operand& q, const Operand& k, const Operand& v, const Operand& mask,
                              float scale);
GGML_MLX_API array conv_1d(const Operand& kernel, const Operand& signal, int stride, int padding, int dilation);
GGML_MLX_API array conv_2d(const Operand& kernel, const Operand& image, int stride0, int stride1, int padding0,
                           int padding1, int dilation0, int dilation1);

/// Computes the value and writes it to dst, which has as many elements and says the type.
GGML_MLX_API void store(const array& value, ggml_tensor* dst);
/// Several at once: what they have in common is computed once.
GGML_MLX_API void store(const std::vector<std::pair<array, ggml_tensor*>>& values);

}  // namespace ggml_mlx
