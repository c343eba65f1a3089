#pragma once
#include <string_view>

#include "base/result.h"

namespace headrace::llm {

/// Refuses grammars in GBNF that llama.cpp's recursive parser would end the process or not end on, and names
/// rules that are missing. What else is wrong llama.cpp finds.
Status check_grammar(std::string_view source);

}  // namespace headrace::llm
