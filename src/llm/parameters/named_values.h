#pragma once
#include "base/result.h"
#include "headrace/language_model.h"
#include "llm/json.h"

namespace headrace::llm {

/// As a JSON object, for values that are to be read as settings. Errors name the value and its place: a
/// number that is not finite, bytes that are no UTF-8, sections that are nested deeper than kMaxJsonDepth.
Result<Json> checked_json_of(const Parameters& parameters);

/// The members of an object, each as parameter_of reads it.
Parameters parameters_of(const Json& object);

}  // namespace headrace::llm
