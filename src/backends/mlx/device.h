#pragma once
#include "backends/mlx/mlx_api.h"
#include "ggml-backend.h"

namespace headrace::mlx {

/// The one device, MLX0: MLX's GPU where there is one, else its CPU.
ggml_backend_dev_t device();
mx::Device mlx_device();

ggml_backend_reg_t registration();
ggml_backend_t make_backend();

}  // namespace headrace::mlx
