#pragma once
#include <vector>

#include "base/result.h"
#include "ir/graph.h"

namespace headrace {

/// Whether each result fits in the machine's whole memory. Errors: out_of_memory, with the node's name; the
/// allocator's would not have it. changed: nodes to look at; null: all. The graph's shapes are numbers.
Status check_results_fit(const Graph& graph, const std::vector<bool>* changed = nullptr);

}  // namespace headrace
