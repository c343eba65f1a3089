#pragma once
#include "ir/graph.h"

namespace headrace {

/// Computes a node of constant operands and concrete results by its reference kernel; its results become
/// constants. The node itself stays, for the caller to remove.
Status make_constant(Graph& graph, const Node& node);

}  // namespace headrace
