#pragma once
#include <nlohmann/json.hpp>

namespace headrace::llm {

/// Keeps the order in which keys were written.
using Json = nlohmann::ordered_json;

}  // namespace headrace::llm
