#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "emit/product_form.h"
#include "ir/graph.h"

struct ggml_backend_device;

namespace headrace {

/// How many ggml tensors a node's lowering creates at most.
std::size_t most_tensors(const Graph& graph, const Node& node);

/// For each node the state that it writes, directly or as another node's new version of it; kNoValue: none.
std::vector<ValueId> written_states(const Graph& graph);

/// How a device computes, as far as that was tried.
struct DeviceArithmetic {
    ProductForms products = {};  ///< the forms in which they are exact
    bool has_exact_outer_products = true;
    bool has_exact_convolutions = true;
    std::vector<std::string> distrusted = {};  ///< ops that it was seen to compute wrongly

    bool operator==(const DeviceArithmetic&) const = default;
};

/// Whether a device takes a node that has a lowering. The device is asked before anything lies in its memory,
/// since ggml ends the process over a tensor there whose device turns out to refuse it: about each operand as
/// a leaf, which a constant is and what comes from the CPU becomes, and about each tensor of the lowering.
/// What it would round to less than f32 it is not given either.
bool takes(ggml_backend_device* device, const DeviceArithmetic& arithmetic, const Graph& graph,
           const Node& node);

}  // namespace headrace
