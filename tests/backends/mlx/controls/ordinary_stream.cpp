// The backend on a stream of MLX's that belongs to one thread.
#include "backends/mlx/arrays/stream.h"

namespace headrace::mlx {

mx::Stream make_stream(mx::Device device) { return mx::new_stream(device); }

}  // namespace headrace::mlx
