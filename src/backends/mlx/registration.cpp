#include <cstring>
#include <string>

#include "backends/mlx/device.h"
#include "backends/mlx/threads.h"
#include "ggml-backend-impl.h"
#include "ggml-impl.h"

namespace headrace::mlx {
namespace {

/// ggml's structures change from one version to the next, and this library reads them directly.
bool is_built_for_host() {
    const std::string built = std::string(HEADRACE_GGML_VERSION) + " (" + HEADRACE_GGML_COMMIT + ")";
    const std::string host = std::string(ggml_version()) + " (" + ggml_commit() + ")";
    if (built == host) return true;
    GGML_LOG_ERROR("ggml-mlx: built for ggml %s, and this program has ggml %s: not loaded\n", built.c_str(),
                   host.c_str());
    return false;
}

void* proc_address(ggml_backend_reg_t, const char* name) {
    if (std::strcmp(name, "ggml_backend_set_n_threads") == 0)
        return reinterpret_cast<void*>(+[](ggml_backend_t, int threads) { set_threads(threads); });
    return nullptr;
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

ggml_backend_reg_t registration_for_host() { return is_built_for_host() ? registration() : nullptr; }

}  // namespace headrace::mlx

GGML_BACKEND_DL_IMPL(headrace::mlx::registration_for_host)
