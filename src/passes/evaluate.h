#pragma once
#include "ir/graph.h"
#include "ir/op_def.h"

namespace headrace {

/// The packed kernel by which make_constant() computes a node; null where that is its reference kernel, which
/// is as fast where there are few operations.
const KernelDef* folding_kernel(const Graph& graph, const Node& node);

/// Computes a node of constant operands and concrete results; its results become constants. The node itself
/// stays, for the caller to remove.
Status make_constant(Graph& graph, const Node& node);

}  // namespace headrace
