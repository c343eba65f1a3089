#pragma once
#include "backends/mlx/mlx_api.h"

namespace headrace::mlx {

/// A stream for whichever thread computes.
mx::Stream make_stream(mx::Device device);

}  // namespace headrace::mlx
