#pragma once
#include <string>
#include <vector>

#include "headrace/headrace.h"
#include "ir/graph.h"

namespace headrace::cli {

/// A drawing of the graph, inputs at the top: a box for each node with its op, label, result types and what
/// runs it (`nodes`, in graph order, as RunStats has them); lines are values.
std::string to_svg(const Graph& graph, const std::vector<NodeStats>& nodes);

}  // namespace headrace::cli
