#pragma once
#include "doors/serve/request/json.h"
#include "headrace/language_model.h"

namespace headrace::serve {

/// A value of a body as the engine takes it. Whole numbers that 64 bits with a sign do not hold become the
/// nearest floating-point ones.
ParameterValue value_of(const Json& value);

/// Parameters as bodies have them.
Json json_of(const Parameters& parameters);

}  // namespace headrace::serve
