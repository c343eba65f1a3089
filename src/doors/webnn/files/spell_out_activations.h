#pragma once
#include "base/result.h"
#include "ir/graph.h"

namespace headrace::webnn {

/// The graph with the catalog's activations that WebNN lacks in operators that it has: silu, gelu_tanh and
/// glu. Checks of indices are left out, since WebNN's clamp.
Result<Graph> spell_out_activations(const Graph& graph);

}  // namespace headrace::webnn
