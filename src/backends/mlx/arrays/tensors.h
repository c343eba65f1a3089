#pragma once
#include <optional>

#include "backends/mlx/arrays/mlx_api.h"
#include "ggml.h"

namespace headrace::mlx {

/// MLX's type for a ggml type that is not quantised; nothing for one that MLX lacks.
std::optional<mx::Dtype> dtype_of(ggml_type type);
/// The type's dtype; the caller knows that there is one.
mx::Dtype require_dtype(ggml_type type);

/// All arrays of the backend have four axes, in MLX's order: ne[3], ne[2], ne[1], ne[0].
Shape shape_of(const ggml_tensor* t);
/// Its strides in elements, in the same order.
Strides strides_of(const ggml_tensor* t);
/// The axis that holds ggml's dimension.
constexpr int axis_of(int dimension) { return 3 - dimension; }

/// The tensor whose memory `t` uses.
const ggml_tensor* root_of(const ggml_tensor* t);
/// A node that only names a part of another tensor.
bool is_view_op(ggml_op op);
/// A node of a graph that something is computed for.
bool is_computed(const ggml_tensor* node);

float float_param(const ggml_tensor* t, int index);
int int_param(const ggml_tensor* t, int index);

/// A type that the arithmetic ops take: f32, f16 or bf16.
bool is_float(ggml_type type);
/// The element type's traits can turn rows into f32.
bool is_quantized(ggml_type type);
/// No dimension or stride exceeds what MLX's 32-bit shapes hold.
bool fits_mlx(const ggml_tensor* t);

}  // namespace headrace::mlx
