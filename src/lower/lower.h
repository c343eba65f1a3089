#pragma once
#include <memory>
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
};

/// Calls each op's lowering or wraps its kernel, in the plan's order.
Result<LoweredGraph> lower(const Plan& plan);

}  // namespace headrace
