#pragma once
#include <optional>

#include "backends/mlx/arrays/mlx_api.h"

namespace headrace::mlx {

// One kernel each: MLX's own on a GPU; on the CPU, where MLX composes them, a loop of ours (row_loops.h).

/// Scale and shift have one element for each of a row.
array rms_norm(const array& x, const std::optional<array>& scale, float eps);
array layer_norm(const array& x, const std::optional<array>& scale, const std::optional<array>& shift,
                 float eps);

array silu(const array& x);
array gelu(const array& x);
array gelu_erf(const array& x);
array gelu_quick(const array& x);

/// silu(gate) * up, gelu(gate) * up
array swiglu(const array& gate, const array& up);
array geglu(const array& gate, const array& up);

}  // namespace headrace::mlx
