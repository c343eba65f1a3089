#include "loading/backends.h"

#include <mutex>

#include "ggml-backend.h"

#ifdef HEADRACE_PORTABLE
#include "base/library_folder.h"
#endif

namespace headrace {

void load_all_backends() {
#ifdef HEADRACE_PORTABLE
    // They lie beside our ggml. By itself ggml would look beside the program, which may be Python, and in the
    // current folder, where those of another ggml may lie.
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
