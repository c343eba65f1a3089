#include "backends/mlx/stream.h"

namespace headrace::mlx {

// MLX's ordinary streams belong to the thread that made them; llama.cpp computes from whichever it likes.
mx::Stream make_stream(mx::Device device) { return mx::new_thread_unsafe_stream(device); }

}  // namespace headrace::mlx
