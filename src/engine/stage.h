#pragma once
#include <string>
#include <vector>

#include "ir/graph.h"

namespace headrace {

/// A part of a graph whose extents are all known when it begins: consecutive nodes, cut before each that
/// counts what the nodes before it compute.
struct Stage {
    /// Inputs: the whole graph's, the values that are carried, and for each symbol that was counted a tensor
    /// without elements, which has it as an extent. Outputs: the values that are made.
    Graph graph;
    std::vector<std::string> symbols;    ///< counted before this stage or an earlier one
    std::vector<ValueId> carried, made;  ///< values of the whole graph
    std::vector<NodeId> counting;        ///< nodes of the whole graph that count before this stage
};

/// None where no node counts.
Result<std::vector<Stage>> split_stages(const Graph& graph);

}  // namespace headrace
