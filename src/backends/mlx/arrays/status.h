#pragma once
#include <exception>

#include "ggml.h"

namespace headrace::mlx {

/// Says on one line of ggml's log what failed, and gives ggml's code for it.
ggml_status report(const char* doing, const std::exception& error);

/// Runs `work`; whatever it throws becomes a status, since ggml is C.
template <class Work>
ggml_status guarded(const char* doing, Work&& work) {
    try {
        work();
        return GGML_STATUS_SUCCESS;
    } catch (const std::exception& error) {
        return report(doing, error);
    }
}

}  // namespace headrace::mlx
