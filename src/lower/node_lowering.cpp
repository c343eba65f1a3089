#include "lower/node_lowering.h"

#include <algorithm>

#include "ggml.h"

namespace headrace {
namespace {

constexpr std::size_t kBlobAlignment = 64;
constexpr int kMaxCustomInputs = GGML_MAX_SRC - 1;

/// A view that begins where a device need not be able to bind memory, which some of ggml's operations want.
/// Devices compute with no other types than these.
bool begins_between_places(const ggml_tensor* output) {
    constexpr std::size_t kPlace = 256;  // as much as Vulkan may ask for
    if (!output || !output->view_src || output->view_offs % kPlace == 0) return false;
    return output->type == GGML_TYPE_F32 || output->type == GGML_TYPE_F16 || output->type == GGML_TYPE_BF16 ||
           output->type == GGML_TYPE_I32;
}

std::size_t aligned(std::size_t n) { return (n + kBlobAlignment - 1) / kBlobAlignment * kBlobAlignment; }

/// In how many pieces a node is computed: each takes about 20 ms on one thread, if its kernel is slow.
int pieces_of(const NodePlan& plan) {
    constexpr double kPieceUs = 20000, kMostPieces = 4096, kBytesPerUs = 1e3;
    const double flops_per_us = plan.kernel ? 4000 : 300;
    const double us = plan.cost.flops / flops_per_us + plan.cost.bytes / kBytesPerUs;
    return static_cast<int>(std::clamp(us / kPieceUs, 1.0, kMostPieces));
}

CustomNode& add_custom(const Node& node, const NodePlan& plan, CustomNodes& customs) {
    const auto run = plan.kernel ? plan.kernel->run : node.op->reference;
    customs.push_back(
        std::make_unique<CustomNode>(run, node.attrs, plan.one_thread, node.title(), pieces_of(plan)));
    return *customs.back();
}

}  // namespace

NodeLowering::NodeLowering(const Plan& plan, LoweredGraph& lowered)
    : plan_(plan), graph_(plan.graph), lowered_(lowered) {
    for (const Node& node : graph_.nodes)
        if (!node.op->is_pure())
            written_states_.push_back(lowered_.values[node.inputs[node.op->writes_state]]);
}

/// What lowerings convert on the CPU stays there.
bool NodeLowering::lies_on_device(ValueId id, bool on_device) const {
    return on_device && !Emit::is_converted_on_cpu(graph_.value(id).type.dtype);
}

ggml_tensor* NodeLowering::constant(ValueId id, bool on_device, Emit& emit) {
    on_device = lies_on_device(id, on_device);
    ggml_tensor*& tensor = lowered_.constant_leaves[{id, on_device}];
    if (!tensor) {
        tensor = emit.leaf(graph_.value(id).type);
        lowered_.constants.push_back({tensor, graph_.value(id).constant.get(), on_device});
    }
    return tensor;
}

void NodeLowering::add_constants(std::size_t node, Emit& emit) {
    const NodePlan& plan = plan_.nodes[node];
    const auto& inputs = graph_.nodes[node].inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i)
        if (inputs[i] != kNoValue && graph_.value(inputs[i]).kind == ValueKind::constant &&
            !is_packed(plan, i))
            constant(inputs[i], plan.on_device, emit);
}

bool NodeLowering::is_packed(const NodePlan& plan, std::size_t operand) const {
    return plan.packed && static_cast<int>(operand) == plan.kernel->packed_operand;
}

ggml_tensor* NodeLowering::operand(ValueId id, bool on_device) const {
    if (id == kNoValue) return nullptr;
    if (graph_.value(id).kind != ValueKind::constant) return lowered_.values[id];
    return lowered_.constant_leaves.at({id, lies_on_device(id, on_device)});
}

std::vector<ggml_tensor*> NodeLowering::lower(std::size_t node, Emit& emit, CustomNodes& customs) {
    const NodePlan& plan = plan_.nodes[node];
    return plan.implementation == Implementation::native ? native(graph_.nodes[node], plan, emit)
                                                         : custom(graph_.nodes[node], plan, emit, customs);
}

std::vector<ggml_tensor*> NodeLowering::native(const Node& node, const NodePlan& plan, Emit& emit) {
    std::vector<ggml_tensor*> sources;
    for (ValueId id : node.inputs) sources.push_back(operand(id, plan.on_device));
    sources.resize(std::max(sources.size(), node.op->operands.size()));
    const auto types = graph_.operand_types(node);
    emit.use(plan.on_device ? plan_.device_products : ProductForms{});
    auto outputs = node.op->lower(emit, sources, Operands(types), node.attrs.get());
    outputs.resize(node.outputs.size());
    if (node.op->is_pure())
        for (ggml_tensor*& output : outputs)
            if (is_written_state(output) || (plan.on_device && begins_between_places(output)))
                output = emit.copy(output);
    return outputs;
}

/// A view of a state shows what a later write puts there; readers of the view want the old content.
bool NodeLowering::is_written_state(const ggml_tensor* tensor) const {
    const ggml_tensor* root = tensor->view_src ? tensor->view_src : tensor;
    return std::find(written_states_.begin(), written_states_.end(), root) != written_states_.end();
}

/// The ggml node that holds all outputs: an ordinary tensor for one output, a blob of bytes for several.
ggml_tensor* NodeLowering::custom_tensor(const Node& node, CustomNode& custom,
                                         std::vector<ggml_tensor*>& sources,
                                         std::span<const TensorType> outputs, Emit& emit) const {
    const int count = static_cast<int>(sources.size());
    if (!node.op->is_pure()) {
        custom.add_output(outputs[0], 0);
        ggml_tensor* state = lowered_.values[node.inputs[node.op->writes_state]];
        // ggml_custom_inplace gives a view of the state and appends our sources after it.
        ggml_tensor* out = ggml_custom_inplace(emit.context(), state, sources.data(), count,
                                               &CustomNode::compute, GGML_N_TASKS_MAX, &custom);
        for (int i = 0; i < count; ++i) out->src[i] = sources[i];
        out->src[count] = nullptr;
        return out;
    }
    if (outputs.size() == 1) {
        custom.add_output(outputs[0], 0);
        const ggml_tensor* like = emit.leaf(outputs[0]);
        return ggml_custom_4d(emit.context(), like->type, like->ne[0], like->ne[1], like->ne[2], like->ne[3],
                              sources.data(), count, &CustomNode::compute, GGML_N_TASKS_MAX, &custom);
    }
    std::size_t bytes = 0;
    for (const TensorType& type : outputs) {
        custom.add_output(type, bytes);
        bytes += aligned(type.bytes());
    }
    return ggml_custom_4d(emit.context(), GGML_TYPE_I8, static_cast<std::int64_t>(bytes), 1, 1, 1,
                          sources.data(), count, &CustomNode::compute, GGML_N_TASKS_MAX, &custom);
}

/// A variadic op over more operands than a ggml node can have: op(op(first nine), the rest ...).
/// Variadic ops are associative, so the value is the same.
ggml_tensor* NodeLowering::chain(const Node& node, Emit& emit, CustomNodes& customs) {
    const std::vector<ValueId>& inputs = node.inputs;
    ggml_tensor* folded = nullptr;
    TensorType folded_type;
    std::size_t next = 0;
    while (next < inputs.size()) {
        NodePlan reference;
        CustomNode& custom = add_custom(node, reference, customs);
        std::vector<ggml_tensor*> sources;
        std::vector<const TensorType*> types;
        const TensorType previous = folded_type;
        const auto add = [&](const TensorType& type, ggml_tensor* tensor) {
            custom.add_input(type, static_cast<int>(sources.size()));
            sources.push_back(tensor);
            types.push_back(&type);
        };
        if (folded) add(previous, folded);
        while (next < inputs.size() && sources.size() < kMaxCustomInputs) {
            add(graph_.value(inputs[next]).type, operand(inputs[next], false));
            ++next;
        }
        folded_type = check_and_infer(*node.op, Operands(types), node.attrs.get()).value()[0];
        folded = custom_tensor(node, custom, sources, {&folded_type, 1}, emit);
    }
    return folded;
}

std::vector<ggml_tensor*> NodeLowering::custom(const Node& node, const NodePlan& plan, Emit& emit,
                                               CustomNodes& customs) {
    if (node.inputs.size() > static_cast<std::size_t>(kMaxCustomInputs)) return {chain(node, emit, customs)};
    CustomNode& custom = add_custom(node, plan, customs);
    std::vector<ggml_tensor*> sources;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const ValueId id = node.inputs[i];
        if (id == kNoValue) {
            custom.add_input({}, -1);
        } else if (is_packed(plan, i)) {
            custom.add_packed(graph_.value(id).type, plan.packed);
        } else {
            custom.add_input(graph_.value(id).type, static_cast<int>(sources.size()));
            sources.push_back(operand(id, false));
        }
    }
    const auto types = graph_.output_types(node);
    ggml_tensor* out = custom_tensor(node, custom, sources, types, emit);
    if (types.size() == 1) return {out};
    std::vector<ggml_tensor*> outputs;
    std::size_t offset = 0;
    for (const TensorType& type : types) {
        outputs.push_back(emit.typed_view(out, type, offset));
        offset += aligned(type.bytes());
    }
    return outputs;
}

}  // namespace headrace
