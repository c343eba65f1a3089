#pragma once
#include <string>
#include <vector>

#include "ir/graph.h"

namespace headrace {

/// A part of a graph whose extents are all known when it begins. What a run does itself lies between stages:
/// it counts extents, and goes through the bodies of nodes that have some.
struct Stage {
    /// Inputs: the whole graph's, the values that are carried, and for each symbol that was counted a tensor
    /// without elements, which has it as an extent. Outputs: the values that are made. It may have no nodes.
    Graph graph;
    std::vector<std::string> symbols;    ///< of the counted ones, those that this stage knows
    std::vector<ValueId> carried, made;  ///< values of the whole graph
    std::vector<NodeId> before;          ///< nodes of the whole graph that the run sees to first, in order
    std::vector<ValueId> released;       ///< values that nothing reads when it has run
};

/// The stages, or none where all is one. Each node is in the first that can have it.
Result<std::vector<Stage>> split_stages(const Graph& graph);

}  // namespace headrace
