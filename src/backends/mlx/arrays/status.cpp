#include "backends/mlx/arrays/status.h"

#include <new>
#include <string_view>

#include "ggml-impl.h"

namespace headrace::mlx {

ggml_status report(const char* doing, const std::exception& error) {
    const std::string_view what = error.what();
    // MLX's allocator throws a runtime_error; only its text tells.
    const bool no_memory = dynamic_cast<const std::bad_alloc*>(&error) ||
                           what.find("Unable to allocate") != std::string_view::npos ||
                           what.find("ut of memory") != std::string_view::npos;
    GGML_LOG_ERROR("ggml-mlx: %s: %s\n", doing, error.what());
    return no_memory ? GGML_STATUS_ALLOC_FAILED : GGML_STATUS_FAILED;
}

}  // namespace headrace::mlx
