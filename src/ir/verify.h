#pragma once
#include "base/result.h"
#include "ir/graph.h"

namespace headrace {

/// Checks that a graph is well-formed, in time linear in its size:
/// - every id is in range, nodes come after what they read, producers and outputs agree;
/// - inputs and states have unique names and are listed once, outputs have unique names;
/// - types are in range and constants hold exactly their type's bytes;
/// - a state has at most one writer, and nothing reads its old version after the write;
/// - inferring every node again yields the stored types;
/// - all this holds of the bodies of its nodes.
///
/// Every door and, in debug builds, every pass ends with it. The error names the node, the value and what is
/// wrong.
Status verify(const Graph& graph);

}  // namespace headrace
