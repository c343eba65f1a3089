#pragma once
#include "backends/mlx/arrays/mlx_api.h"
#include "ggml.h"

namespace headrace::mlx {

/// i32 numbers of rows as they are; a run with one outside [0, count) fails with a message that names `op`,
/// where MLX's own kernels would read or write whatever lies there. On a GPU, which would have to wait for
/// the CPU, they are not looked at. `stream` is the CPU's.
array checked_numbers(mx::Stream stream, const array& numbers, std::int64_t count, ggml_op op);

}  // namespace headrace::mlx
