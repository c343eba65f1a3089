#pragma once
#include <optional>

#include "backends/mlx/graph/builder.h"

namespace headrace::mlx {

/// MUL_MAT's value plus a bias for each column, in one call of MLX's; nothing for the products that have no
/// such call.
std::optional<array> biased_matmul(Builder& b, const ggml_tensor* t, const array& bias);

}  // namespace headrace::mlx
