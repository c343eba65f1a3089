#pragma once
#include <functional>
#include <string_view>

#include "base/result.h"

namespace headrace::llm {

/// Whether a text such as "<think>" is one token of the model, and "<[5]>" the number of one.
using IsToken = std::function<bool(std::string_view)>;

/// Refuses grammars in GBNF that llama.cpp's parser refuses, with the line and the column, which llama.cpp
/// tells only stderr; and those on which it would end the process, take all memory or not end. Left out is
/// whether a rule begins with itself. Without is_token any text between < and > passes.
Status check_grammar(std::string_view source, const IsToken& is_token = {});

}  // namespace headrace::llm
