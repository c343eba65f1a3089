#pragma once
#include <optional>

#include "backends/mlx/graph/builder.h"

namespace headrace::mlx {

/// The node together with those before it, where MLX has one function for all: a norm and its scale (and
/// shift), a product and its bias. Nothing then uses the values in between, and what nothing uses MLX does
/// not compute.
std::optional<array> fuse(Builder& b, const ggml_tensor* t);

}  // namespace headrace::mlx
