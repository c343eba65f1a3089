#pragma once
#include "backends/mlx/arrays/mlx_api.h"

namespace headrace::mlx {

/// The device that the backend computes on: MLX's GPU where there is one, else its CPU.
mx::Device mlx_device();

/// A stream for whichever thread computes.
mx::Stream make_stream(mx::Device device);

}  // namespace headrace::mlx
