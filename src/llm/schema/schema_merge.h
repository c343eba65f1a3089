#pragma once
#include <optional>
#include <string_view>

#include "llm/json.h"

namespace headrace::llm {

/// Says nothing about which values fit.
bool is_annotation(std::string_view keyword);

/// The schema of the values that fit both, where one schema can say that.
std::optional<Json> merged_schemas(const Json& a, const Json& b);

}  // namespace headrace::llm
