#pragma once
#include <string>
#include <vector>

#include "llm/json.h"

namespace headrace::llm {

/// The patterns of a JSON schema's texts for which llama.cpp takes any text: what is not anchored with ^ and
/// $, and what its grammars cannot express. llama.cpp says so on stderr only.
std::vector<std::string> ignored_patterns(const Json& schema);

}  // namespace headrace::llm
