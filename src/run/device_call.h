#pragma once
#include <exception>
#include <new>
#include <string>

#include "base/result.h"

namespace headrace {

/// The call's status, or its exception as one: ggml's backends let through what their drivers throw.
template <class F>
Status device_call(const std::string& device, F&& call) {
    try {
        return call();
    } catch (const std::bad_alloc&) {
        return failure(Code::out_of_memory, "device '{}' ran out of memory", device);
    } catch (const std::exception& e) {
        return failure(Code::backend_failure, "device '{}' failed: {}", device, e.what());
    }
}

}  // namespace headrace
