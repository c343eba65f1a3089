#pragma once
#include "base/result.h"

namespace headrace::wasi_nn {

/// A call of the public API, whose errors are exceptions. What else is thrown is its caller's.
template <class Call>
auto caught(Call call) -> Result<decltype(call())> {
    try {
        return call();
    } catch (const Exception& e) {
        return Error{e.code(), e.what(), e.parameter()};
    }
}

}  // namespace headrace::wasi_nn
