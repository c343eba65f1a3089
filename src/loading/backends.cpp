#include "loading/backends.h"

#include <mutex>
#include <string>

#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml.h"
#include "loading/ggml_log.h"
#include "loading/library_search.h"

#ifdef HEADRACE_PORTABLE
#include "base/library_folder.h"
#endif

namespace headrace {
namespace {

/// While it lives ggml tells of problems only, and not of each library that it loads.
class QuietLog {
public:
    QuietLog() {
        ggml_log_get(&before_, &data_);
        ggml_log_set(pass_problems, this);
    }
    ~QuietLog() { ggml_log_set(before_, data_); }
    QuietLog(const QuietLog&) = delete;

private:
    static void pass_problems(ggml_log_level level, const char* text, void* self) {
        const auto* log = static_cast<const QuietLog*>(self);
        if (level == GGML_LOG_LEVEL_WARN || level == GGML_LOG_LEVEL_ERROR)
            log->before_(level, text, log->data_);
    }

    ggml_log_callback before_ = nullptr;
    void* data_ = nullptr;
};

void load_backend(const char* name, const std::string& library) {
    if (!library.empty() && !ggml_backend_reg_by_name(name)) ggml_backend_load(library.c_str());
}

/// Libraries that are loaded where the build has made them.
void load_device_backends() {
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    load_backend("CUDA", find_backend_library("libggml-cuda.so", "GGML_CUDA_LIBRARY"));
    load_backend("Vulkan", find_backend_library("libggml-vulkan.so", "GGML_VULKAN_LIBRARY"));
}

}  // namespace

void load_all_backends() {
    const QuietLog quiet;
#ifdef HEADRACE_PORTABLE
    // They lie beside our ggml. By itself ggml would look beside the program, which may be Python, and in the
    // current folder, where those of another ggml may lie.
    const auto folder = library_folder(reinterpret_cast<const void*>(&ggml_backend_load_all));
    ggml_backend_load_all_from_path(folder.c_str());
#else
    ggml_backend_load_all();
#endif
    load_device_backends();
}

void load_backends() {
    static std::once_flag once;
    std::call_once(once, [] {
        capture_ggml_log();
        if (ggml_backend_dev_count() == 0) load_all_backends();
        const QuietLog quiet;
        load_device_backends();
    });
}

void make_cpu_tables() {
#ifndef HEADRACE_PORTABLE
    ggml_cpu_init();
#endif
}

}  // namespace headrace
