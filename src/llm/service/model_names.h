#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "llm/settings.h"

namespace headrace::llm {

/// The path of a model: an alias's, or the name itself, inside the model root where there is one. Errors:
/// Code::denied outside it.
Result<std::string> model_path(std::string_view name, const Settings& settings);

}  // namespace headrace::llm
