#pragma once
#include <string>

#include "ir/graph.h"

namespace headrace {

/// The graph as text for people, one line a value or node:
///
///     input    %0 "ids" : i64[1, seq]  (seq = 1..512)
///     constant %1 "weight" : f32[384, 384]  (576.0 KiB)
///     constant %2 : f32[]  = 0.5
///     %3 = matmul(%0 "ids", %1 "weight") {transpose_b=true} : f32[1, seq, 384]   # encoder.0
///     output   "embedding" = %3
///
/// The bodies of a node follow its line, set in. Attributes equal to their defaults are left out. A broken
/// graph prints too, so that it can be examined.
std::string print(const Graph& graph);

/// One node's line, without the line end.
std::string print(const Graph& graph, const Node& node);

}  // namespace headrace
