#pragma once
#include <string>
#include <vector>

#include "base/result.h"

namespace headrace::llm {

/// GBNF of the values in JSON that fit a schema.
Result<std::string> schema_grammar(const std::string& schema);

/// llama.cpp's grammar of a kept schema, with the rules of its numbers.
std::string with_numbers(std::string grammar, const std::vector<std::string>& numbers);

}  // namespace headrace::llm
