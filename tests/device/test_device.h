#pragma once
#include <cstdlib>
#include <string>

namespace headrace::testing {

/// What these tests run on: the device that tools/test_device.py names.
inline std::string test_device() {
    const char* name = std::getenv("HEADRACE_TEST_DEVICE");
    return name ? name : "auto";
}

}  // namespace headrace::testing
