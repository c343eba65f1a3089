#include "backends/mlx/device.h"

#include <string>

#include "backends/mlx/arrays/stream.h"
#include "backends/mlx/buffer_type.h"
#include "backends/mlx/memory/machine_memory.h"
#include "backends/mlx/ops/table.h"
#include "ggml-backend-impl.h"
#include "mlx/version.h"

namespace headrace::mlx {
namespace {

const char* name(ggml_backend_dev_t) { return "MLX0"; }

const char* description(ggml_backend_dev_t) {
    static const std::string text =
        std::string("Apple MLX ") + mx::version() + (mlx_device() == mx::Device::gpu ? " (GPU)" : " (CPU)");
    return text.c_str();
}

void memory(ggml_backend_dev_t, std::size_t* free, std::size_t* total) {
    const MemorySize size = device_memory();
    *free = size.free;
    *total = size.total;
}

/// Also where MLX computes on the CPU: llama.cpp gives layers (-ngl) to GPUs only.
enum ggml_backend_dev_type type(ggml_backend_dev_t) { return GGML_BACKEND_DEVICE_TYPE_GPU; }

void properties(ggml_backend_dev_t device, ggml_backend_dev_props* props) {
    *props = {};
    props->name = name(device);
    props->description = description(device);
    props->type = type(device);
    memory(device, &props->memory_free, &props->memory_total);
}

constexpr ggml_backend_device_i kDeviceInterface{
    .get_name = name,
    .get_description = description,
    .get_memory = memory,
    .get_type = type,
    .get_props = properties,
    .init_backend = [](ggml_backend_dev_t, const char*) { return make_backend(); },
    .get_buffer_type = [](ggml_backend_dev_t) { return buffer_type(); },
    .supports_op = [](ggml_backend_dev_t, const ggml_tensor* t) { return supports(t); },
    .supports_buft = [](ggml_backend_dev_t, ggml_backend_buffer_type_t b) { return b == buffer_type(); },
};

}  // namespace

ggml_backend_dev_t device() {
    static ggml_backend_device instance{.iface = kDeviceInterface, .reg = registration(), .context = nullptr};
    return &instance;
}

}  // namespace headrace::mlx
