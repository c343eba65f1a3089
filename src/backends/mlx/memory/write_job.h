#pragma once
#include <optional>

#include "backends/mlx/arrays/mlx_api.h"
#include "backends/mlx/gpu/gpu.h"

struct ggml_tensor;

namespace headrace::mlx {

/// How `values` get into the tensor's memory, row by row or where row numbers (in i64) say. Nothing for types
/// that the kernels do not write: blocks that MLX has no format for, K-quants, and blocks as they are.
std::optional<PlannedWrite> plan_write(const ggml_tensor* t, const array& values, const array* numbers);

}  // namespace headrace::mlx
