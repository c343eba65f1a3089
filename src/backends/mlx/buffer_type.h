#pragma once
#include "ggml-backend.h"

namespace headrace::mlx {

/// The device's memory as ggml allocates it. Not "host" memory: quantised tensors are repacked in it.
ggml_backend_buffer_type_t buffer_type();

}  // namespace headrace::mlx
