#include "backends/mlx/arrays/stream.h"

namespace headrace::mlx {

mx::Device mlx_device() {
    static const mx::Device device = mx::is_available(mx::Device::gpu) ? mx::Device::gpu : mx::Device::cpu;
    return device;
}

// MLX's ordinary streams belong to the thread that made them; llama.cpp computes from whichever it likes.
mx::Stream make_stream(mx::Device device) { return mx::new_thread_unsafe_stream(device); }

}  // namespace headrace::mlx
