#pragma once
#include "llm/json.h"

namespace headrace::llm {

/// Every row of the table, as `headrace parameters --json` has them.
Json parameters_list();

}  // namespace headrace::llm
