#pragma once
#include "base/result.h"

struct ggml_backend_device;

namespace headrace {

/// The device of libggml-mlx.so, which is loaded unless it is already: from GGML_MLX_LIBRARY, or from the
/// folder this code was loaded from, its neighbour lib, or where the system looks for libraries.
Result<ggml_backend_device*> load_mlx_device();
/// Whether the library is loaded, or lies in one of these places but the last. Loads nothing.
bool has_mlx_library();

}  // namespace headrace
