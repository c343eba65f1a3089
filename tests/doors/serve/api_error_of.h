#pragma once
#include <gtest/gtest.h>

#include "doors/serve/request/errors.h"

namespace headrace::serve {

/// What a call throws that is to fail.
template <class Call>
ApiError error_of(Call call) {
    try {
        call();
    } catch (const ApiError& error) {
        return error;
    }
    ADD_FAILURE() << "nothing was thrown";
    return {0, "", ""};
}

}  // namespace headrace::serve
