#pragma once
#include <executorch/runtime/backend/interface.h>

#include "headrace/export.h"
#include "headrace/headrace.h"

namespace headrace::executorch_door {

/// The backend options: what they are called and what they set in CompileOptions. A program that is loaded
/// takes the process's settings, then those given with the load.
///
///     num_threads      int     threads of a run; 0: as many as the process's default
///     device           string  "cpu", a device's name, "rpc://host:port", or several of those with commas
///     host_timeout_ms  int     a remote host that is silent for that long is lost; at least 100
///     packed_kernels   bool    Headrace's own CPU kernels where they apply (the default), else ggml's
///     packed_cache     string  where packed weights are kept for later starts: "on", "off" or a folder; "",
///                              the default, leaves it to the environment (CompileOptions::packed_cache)
///     precision        string  "exact" (the default), or "fast" (CompileOptions::precision)
class Settings {
public:
    /// Unknown names and values of the wrong type or range are logged and InvalidArgument; nothing changes
    /// then.
    executorch::runtime::Error set(
        executorch::runtime::Span<const executorch::runtime::BackendOption> options);
    /// Fills in the values of the options that are named.
    executorch::runtime::Error get(
        executorch::runtime::Span<executorch::runtime::BackendOption> options) const;

    CompileOptions compile_options() const;

private:
    int threads_ = 0;
    std::string device_ = "cpu";
    int host_timeout_ms_ = 60000;
    bool packed_kernels_ = true;
    std::string packed_cache_;
    std::string precision_ = "exact";
};

}  // namespace headrace::executorch_door

/// ExecuTorch's set_option for Python, whose module of ExecuTorch's has none. type: 'b' or 'i', a bool or an
/// int, which is the number, or 's', the text. Returns the executorch::runtime::Error, 0 for none; the log
/// says what is wrong.
extern "C" HEADRACE_API int headrace_executorch_set_option(const char* name, char type, int number,
                                                           const char* text);
