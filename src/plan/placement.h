#pragma once
#include <cstddef>

#include "ir/graph.h"

struct ggml_backend_device;

namespace headrace {

/// How many ggml tensors a node's lowering creates at most.
std::size_t most_tensors(const Node& node);

/// Whether a device takes a node that has a lowering. The device is asked before anything lies in its memory,
/// since ggml ends the process over a tensor there whose device turns out to refuse it: about each operand as
/// a leaf, which a constant is and what comes from the CPU becomes, and about each tensor of the lowering.
bool takes(ggml_backend_device* device, const Graph& graph, const Node& node);

}  // namespace headrace
