#pragma once
#include "passes/pass.h"

namespace headrace {

/// Computes pure nodes whose operands are all constant, within FoldLimits.
Result<Counts> fold_constants(Graph& graph, const PassContext& context);

}  // namespace headrace
