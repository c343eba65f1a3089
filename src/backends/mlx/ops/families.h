#pragma once
#include <span>

#include "backends/mlx/arrays/tensors.h"
#include "backends/mlx/graph/builder.h"
#include "backends/mlx/host/fused.h"
#include "backends/mlx/ops/table.h"

namespace headrace::mlx {

// Each family is a file op_<family>.cpp that lists its rows.
std::span<const OpRow> binary_ops();
std::span<const OpRow> unary_ops();
std::span<const OpRow> glu_ops();
std::span<const OpRow> reduction_ops();
std::span<const OpRow> normalization_ops();
std::span<const OpRow> softmax_ops();
std::span<const OpRow> matmul_ops();
std::span<const OpRow> copy_ops();
std::span<const OpRow> row_ops();
std::span<const OpRow> shape_ops();
std::span<const OpRow> rope_ops();
std::span<const OpRow> attention_ops();
std::span<const OpRow> convolution_ops();
std::span<const OpRow> image_ops();
std::span<const OpRow> recurrent_ops();
std::span<const OpRow> hyper_connection_ops();

/// Repeats `value`, of `from`'s shape, up to `to`'s shape where MLX would not broadcast: extents other
/// than 1.
array repeat_to(const array& value, const ggml_tensor* from, const ggml_tensor* to);
/// An f32 constant of one axis.
array constant(const std::vector<float>& values);

array relu(const array& x);

}  // namespace headrace::mlx
