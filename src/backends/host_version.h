#pragma once

#include <string>

#include "ggml-impl.h"

namespace headrace {

/// Whether the program's ggml is the one that `library` was built for: its structures and classes change from
/// one version to the next, and a backend reads them directly. Logs an error where it is not.
inline bool is_built_for_host(const char* library) {
    const std::string built = std::string(HEADRACE_GGML_VERSION) + " (" + HEADRACE_GGML_COMMIT + ")";
    const std::string host = std::string(ggml_version()) + " (" + ggml_commit() + ")";
    if (built == host) return true;
    GGML_LOG_ERROR("%s: built for ggml %s, and this program has ggml %s: not loaded\n", library,
                   built.c_str(), host.c_str());
    return false;
}

}  // namespace headrace
