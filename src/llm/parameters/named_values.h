#pragma once
#include "base/result.h"
#include "headrace/language_model.h"
#include "llm/json.h"

namespace headrace::llm {

/// As a JSON object, whatever the values are.
Json json_of(const Parameters& parameters);

/// The same for values that are to be read as settings. Errors name the value and its place: a number that is
/// not finite, bytes that are no UTF-8, sections that are nested deeper than kMaxJsonDepth.
Result<Json> checked_json_of(const Parameters& parameters);

/// Of an object. Whole numbers that 64 bits with a sign do not hold become the nearest floating-point ones.
Parameters parameters_of(const Json& object);

}  // namespace headrace::llm
