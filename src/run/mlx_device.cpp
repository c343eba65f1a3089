#include "run/mlx_device.h"

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string>

#include "base/library_folder.h"
#include "ggml-backend.h"

namespace headrace {
namespace {

constexpr const char* kLibrary = "libggml-mlx.so";

ggml_backend_dev_t registered() {
    ggml_backend_reg_t mlx = ggml_backend_reg_by_name("MLX");
    return mlx && ggml_backend_reg_dev_count(mlx) > 0 ? ggml_backend_reg_dev_get(mlx, 0) : nullptr;
}

std::string library_path() {
    if (const char* given = std::getenv("GGML_MLX_LIBRARY")) return given;
    const auto here = library_folder(reinterpret_cast<const void*>(&load_mlx_device));
    std::error_code error;
    if (!here.empty())
        for (const auto& folder : {here, here / "lib", here.parent_path() / "lib"})
            if (std::filesystem::exists(folder / kLibrary, error)) return (folder / kLibrary).string();
    return kLibrary;
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
