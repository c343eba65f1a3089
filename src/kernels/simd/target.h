// The instruction set that the kernels use here.
#pragma once

#include <string_view>

namespace headrace::kernels {

// The best that this CPU has of those that are compiled: "AVX3_DL", "AVX2", "NEON", ...
std::string_view simd_target();

}  // namespace headrace::kernels
