#pragma once
#include <string_view>

namespace headrace {

/// What a GGUF file begins with.
constexpr std::string_view kGgufMagic = "GGUF";

}  // namespace headrace
