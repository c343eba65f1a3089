#pragma once
#include "backends/mlx/backend.h"
#include "backends/mlx/device.h"
#include "backends/mlx/workbench.h"

namespace headrace::mlx {

inline BackendHandle mlx_backend() { return BackendHandle(make_backend()); }

}  // namespace headrace::mlx
