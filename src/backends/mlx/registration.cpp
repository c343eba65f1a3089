#include <cstring>

#include "backends/host_version.h"
#include "backends/mlx/arrays/status.h"
#include "backends/mlx/device.h"
#include "backends/mlx/host/threads.h"
#include "backends/mlx/memory/buffer.h"
#include "ggml-backend-impl.h"

namespace headrace::mlx {
namespace {

void* proc_address(ggml_backend_reg_t, const char* name) {
    if (std::strcmp(name, "ggml_backend_set_n_threads") == 0)
        return reinterpret_cast<void*>(+[](ggml_backend_t, int threads) { set_threads(threads); });
    return nullptr;
}

/// An MLX for CUDA has none, for the CPU either, where CUDA has no GPU or no driver for it.
bool has_memory() {
    return guarded("MLX has no memory on this machine", [] { const Buffer probe(1); }) == GGML_STATUS_SUCCESS;
}

}  // namespace

ggml_backend_reg_t registration() {
    static ggml_backend_reg instance{
        .api_version = GGML_BACKEND_API_VERSION,
        .iface = {.get_name = [](ggml_backend_reg_t) { return "MLX"; },
                  .get_device_count = [](ggml_backend_reg_t) -> std::size_t { return 1; },
                  .get_device = [](ggml_backend_reg_t, std::size_t) { return device(); },
                  .get_proc_address = proc_address},
        .context = nullptr};
    return &instance;
}

ggml_backend_reg_t registration_for_host() {
    return is_built_for_host("ggml-mlx") && has_memory() ? registration() : nullptr;
}

}  // namespace headrace::mlx

GGML_BACKEND_DL_IMPL(headrace::mlx::registration_for_host)
