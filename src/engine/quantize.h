#pragma once
#include "headrace/headrace.h"
#include "ir/graph.h"

namespace headrace {

BlockFormat block_format(WeightFormat format);

/// The graph with its matrices as CompileOptions::weights would store them, for files: products stay in f32,
/// and of the optimiser only what finds the matrices has run, so that whoever loads the graph optimises it
/// for the machine at hand. Graphs in f16 compute in f32 afterwards.
Result<Graph> quantize_graph(Graph graph, WeightFormat format);

}  // namespace headrace
