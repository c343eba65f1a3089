#include "loading/backends.h"

#include <mutex>

#include "ggml-backend.h"
#include "ggml.h"

#ifdef HEADRACE_PORTABLE
#include "base/library_folder.h"
#endif

namespace headrace {

#ifdef HEADRACE_PORTABLE
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

}  // namespace
#endif

void load_all_backends() {
#ifdef HEADRACE_PORTABLE
    // They lie beside our ggml. By itself ggml would look beside the program, which may be Python, and in the
    // current folder, where those of another ggml may lie.
    const QuietLog quiet;
    const auto folder = library_folder(reinterpret_cast<const void*>(&ggml_backend_load_all));
    ggml_backend_load_all_from_path(folder.c_str());
#else
    ggml_backend_load_all();
#endif
}

void load_backends() {
    static std::once_flag once;
    std::call_once(once, [] {
        if (ggml_backend_dev_count() == 0) load_all_backends();
    });
}

}  // namespace headrace
