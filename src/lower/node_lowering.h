#pragma once
#include <memory>
#include <span>
#include <vector>

#include "emit/emit.h"
#include "lower/lower.h"

namespace headrace {

using CustomNodes = std::vector<std::unique_ptr<CustomNode>>;

/// How one node of a plan becomes tensors: the op's own lowering, or its kernel as a custom node.
class NodeLowering {
public:
    /// The graph's inputs and states must have tensors.
    NodeLowering(const Plan& plan, LoweredGraph& lowered);

    /// Leaves for the constants that the node reads.
    void add_constants(std::size_t node, Emit& emit);
    /// Its outputs. Its tensors are in emit's context, which must have room; its custom nodes join others.
    std::vector<ggml_tensor*> lower(std::size_t node, Emit& emit, CustomNodes& customs);
    ggml_tensor* constant(ValueId id, bool on_device, Emit& emit);

private:
    bool lies_on_device(ValueId id, bool on_device) const;
    ggml_tensor* operand(ValueId id, bool on_device) const;
    bool is_packed(const NodePlan& plan, std::size_t operand) const;
    bool is_written_state(const ggml_tensor* tensor) const;
    std::vector<ggml_tensor*> native(const Node& node, const NodePlan& plan, Emit& emit);
    std::vector<ggml_tensor*> custom(const Node& node, const NodePlan& plan, Emit& emit,
                                     CustomNodes& customs);
    ggml_tensor* chain(const Node& node, Emit& emit, CustomNodes& customs);
    ggml_tensor* custom_tensor(const Node& node, CustomNode& custom, std::vector<ggml_tensor*>& sources,
                               std::span<const TensorType> outputs, Emit& emit) const;

    const Plan& plan_;
    const Graph& graph_;
    LoweredGraph& lowered_;
    std::vector<const ggml_tensor*> written_states_;
};

}  // namespace headrace
