#include "run/mlx_device.h"

#include <filesystem>
#include <mutex>
#include <string>

#include "ggml-backend.h"
#include "loading/library_search.h"

namespace headrace {
namespace {

constexpr const char* kLibrary = "libggml-mlx.so";

ggml_backend_dev_t registered() {
    ggml_backend_reg_t mlx = ggml_backend_reg_by_name("MLX");
    return mlx && ggml_backend_reg_dev_count(mlx) > 0 ? ggml_backend_reg_dev_get(mlx, 0) : nullptr;
}

std::string library_path() {
    const std::string found = find_backend_library(kLibrary, "GGML_MLX_LIBRARY");
    return found.empty() ? kLibrary : found;
}

}  // namespace

bool has_mlx_library() {
    std::error_code error;
    return registered() || (library_path() != kLibrary && std::filesystem::exists(library_path(), error));
}

Result<ggml_backend_dev_t> load_mlx_device() {
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    if (ggml_backend_dev_t device = registered()) return device;
    const std::string path = library_path();
    ggml_backend_load(path.c_str());
    if (ggml_backend_dev_t device = registered()) return device;
    return unsupported(
        "device 'mlx': {} could not be loaded, and ggml's log says why; make mlx builds it, and "
        "GGML_MLX_LIBRARY may name another one",
        path);
}

}  // namespace headrace
