#pragma once
#include "passes/pass.h"

namespace headrace {

/// Lets readers of a node that equals one of its operands (OpDef::same_as) read the operand.
Result<Counts> eliminate_no_ops(Graph& graph, const PassContext& context);

}  // namespace headrace
