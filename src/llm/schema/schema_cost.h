#pragma once
#include "base/result.h"
#include "llm/json.h"

namespace headrace::llm {

/// Refuses JSON schemas, also those inside of tools, from which llama.cpp would make a grammar for minutes:
/// it lists, for each optional property of an object, all that may follow.
Status check_schema_cost(const Json& schema);

}  // namespace headrace::llm
