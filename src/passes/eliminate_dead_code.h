#pragma once
#include "passes/pass.h"

namespace headrace {

/// Removes nodes whose results reach no output and no state write, and the values that only they used.
Result<Counts> eliminate_dead_code(Graph& graph, const PassContext& context);

}  // namespace headrace
