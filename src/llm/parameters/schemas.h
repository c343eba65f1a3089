#pragma once
#include <string>

#include "llm/parameters/value.h"

namespace headrace::llm {

/// Refuses a JSON schema that takes too long, and warns of what answers are not held to; where it is strict
/// that is an error. place: of the schema in the parameter.
Status check_schema(const ParameterContext& parameter, const std::string& place, const Json& schema,
                    bool is_strict);

/// OpenAI's "strict" of what holds a schema.
Result<bool> strictness(const ParameterContext& parameter, const std::string& place, const Json& holder);

}  // namespace headrace::llm
