#pragma once
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/result.h"
#include "lower/custom_node.h"
#include "plan/plan.h"

struct ggml_context;
struct ggml_cgraph;
struct ggml_tensor;

namespace headrace {

struct GgmlContextFree {
    void operator()(ggml_context* ctx) const;
};
using GgmlContext = std::unique_ptr<ggml_context, GgmlContextFree>;

/// A constant's tensor, not yet backed by memory: run/ points CPU ones at the bytes and uploads the others.
struct ConstantTensor {
    ggml_tensor* tensor;
    const Constant* constant;
    bool on_device;
};

/// A plan as one ggml graph. Tensors are unallocated; inputs, states and constants are leaves.
struct LoweredGraph {
    std::vector<GgmlContext> contexts;
    ggml_cgraph* graph = nullptr;
    std::vector<std::unique_ptr<CustomNode>> custom_nodes;
    std::vector<ggml_tensor*> inputs;  ///< in the graph's order
    std::vector<ggml_tensor*> states;
    std::vector<ggml_tensor*> outputs;  ///< in the graph's order; may be views, inputs or repeat each other
    std::vector<ConstantTensor> constants;
    /// Range of graph nodes [first, last) that each IR node became.
    std::vector<std::pair<int, int>> node_ranges;

    /// What relower() needs: the tensors of the IR's values and constants (those on a device apart), all
    /// tensors that each IR node was made of and its custom nodes, up to the ends, and a context to reuse.
    std::vector<ggml_tensor*> values;
    std::map<std::pair<ValueId, bool>, ggml_tensor*> constant_leaves;
    std::vector<ggml_tensor*> node_tensors;
    std::vector<std::size_t> tensor_ends, custom_ends;
    GgmlContext scratch;
};

/// Calls each op's lowering or wraps its kernel, in the plan's order.
Result<LoweredGraph> lower(const Plan& plan);

/// Makes the graph of a plan that of another one, of the same IR graph for other extents, which differs in
/// some nodes at most: those get their new extents, and all tensors stay where they are. False: the graphs
/// are not alike, and what is left of this one is of no use. What has other extents is to be placed anew.
bool relower(LoweredGraph& lowered, const Plan& now, const std::vector<bool>& changed_nodes);

}  // namespace headrace
