#pragma once
#include "doors/serve/request/fields.h"
#include "headrace/language_model.h"

namespace headrace::serve {

/// `tools` in OpenAI's shape, and a `tool_choice`: "auto", "none", "required", one that names a function,
/// which leaves only that of the tools, and required; or one that lists allowed tools, which leaves those.
/// Throws ApiError for a choice without tools.
void read_tools(const Fields& body, Parameters& parameters);

/// OpenAI's first names for the same: `functions` and `function_call`. Whether the body has functions, whose
/// call the answer then has under these names, too.
bool read_functions(const Fields& body, Parameters& parameters);

/// Throws ApiError where a call is forced that the model's template cannot show.
void check_can_call(const Parameters& parameters, const ModelInfo& model);

}  // namespace headrace::serve
