#pragma once
#include "ggml-backend-impl.h"

namespace headrace::packed {

/// Memory whose matrices of weights are packed as they are written, and which ggml's CPU backend multiplies
/// by calling us from its own threads.
ggml_backend_buffer_type_t buffer_type(ggml_backend_dev_t cpu);

}  // namespace headrace::packed
