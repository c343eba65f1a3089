#pragma once
#include "backends/mlx/arrays/mlx_api.h"
#include "ggml-backend.h"

namespace headrace::mlx {

/// The one device, MLX0, on mlx_device().
ggml_backend_dev_t device();

ggml_backend_reg_t registration();
ggml_backend_t make_backend();

}  // namespace headrace::mlx
