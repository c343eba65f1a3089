#pragma once
#include "ggml-cpu/traits.h"

namespace headrace::packed {

/// Asks that a node of a graph for the CPU gives every row of its result as it would beside any other rows,
/// on any number of threads and wherever in the cache the row's keys lie. False: nothing here or in ggml
/// promises that. A mark of the node is what remembers it, so call it for each graph, before it is computed.
bool make_invariant(ggml_tensor* node);

/// Whether that was asked of a node of attention or of a product.
bool is_invariant(const ggml_tensor* node);

}  // namespace headrace::packed
