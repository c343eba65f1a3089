#pragma once
#include <cstdint>
#include <optional>

#include "backends/mlx/gpu/write_unit.h"
#include "backends/mlx/mlx_api.h"

struct ggml_tensor;

namespace headrace::mlx {

/// A write in place as a GPU does it: a thread for each unit.
struct PlannedWrite {
    WriteJob job;
    std::int64_t units;
    int element_bytes;  ///< 0: the units are groups of 32 values
};

/// How `values` get into the tensor's memory, row by row or where row numbers (in i64) say. Nothing for types
/// that the kernels do not write: blocks that MLX has no format for, K-quants, and blocks as they are.
std::optional<PlannedWrite> plan_write(const ggml_tensor* t, const array& values, const array* numbers);

}  // namespace headrace::mlx
