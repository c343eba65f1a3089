#include "lower/lower.h"

#include <algorithm>
#include <map>

#include "emit/emit.h"
#include "ggml.h"
#include "plan/placement.h"

namespace headrace {

void GgmlContextFree::operator()(ggml_context* ctx) const { ggml_free(ctx); }

namespace {

constexpr std::size_t kBlobAlignment = 64;
constexpr int kMaxCustomInputs = GGML_MAX_SRC - 1;

std::size_t aligned(std::size_t n) { return (n + kBlobAlignment - 1) / kBlobAlignment * kBlobAlignment; }

class Lowering {
public:
    explicit Lowering(const Plan& plan) : plan_(plan), graph_(plan.graph), tensors_(graph_.values.size()) {}

    Result<LoweredGraph> run();

private:
    /// ggml aborts when a context is full, so every node starts with room for the most it may create.
    Status reserve(std::size_t tensors);
    Status add_context(std::size_t tensors);
    void add_leaves();
    ggml_tensor* constant(ValueId id, bool on_device);
    ggml_tensor* operand(ValueId id, bool on_device);
    void lower_native(const Node& node, const NodePlan& plan);
    void lower_custom(const Node& node, const NodePlan& plan);
    bool is_written_state(const ggml_tensor* tensor) const;
    ggml_tensor* chain(const Node& node, std::vector<ValueId> inputs);
    ggml_tensor* custom_tensor(const Node& node, CustomNode& custom, std::vector<ggml_tensor*>& sources,
                               std::span<const TensorType> outputs);
    CustomNode& new_custom(const Node& node, const NodePlan& plan);
    Status build_graph();

    const Plan& plan_;
    const Graph& graph_;
    std::vector<ggml_tensor*> tensors_;
    std::vector<const ggml_tensor*> written_states_;
    std::map<std::pair<ValueId, bool>, ggml_tensor*> constants_;
    LoweredGraph result_;
    Emit emit_{nullptr};
    std::size_t tensor_count_ = 0;
};

Status Lowering::add_context(std::size_t tensors) {
    ggml_context* ctx =
        ggml_init({.mem_size = tensors * ggml_tensor_overhead(), .mem_buffer = nullptr, .no_alloc = true});
    if (!ctx) return failure(Code::out_of_memory, "cannot allocate a ggml context for {} tensors", tensors);
    result_.contexts.emplace_back(ctx);
    emit_ = Emit(ctx);
    tensor_count_ += tensors;
    return success();
}

Status Lowering::reserve(std::size_t tensors) {
    constexpr std::size_t kChunk = 512;
    ggml_context* ctx = emit_.context();
    if (ctx && ggml_get_mem_size(ctx) - ggml_used_mem(ctx) >= tensors * ggml_tensor_overhead())
        return success();
    return add_context(std::max(tensors, kChunk));
}

void Lowering::add_leaves() {
    for (ValueId id : graph_.inputs) {
        tensors_[id] = emit_.leaf(graph_.value(id).type);
        ggml_set_input(tensors_[id]);
        result_.inputs.push_back(tensors_[id]);
    }
    for (ValueId id : graph_.states) {
        tensors_[id] = emit_.leaf(graph_.value(id).type);
        result_.states.push_back(tensors_[id]);
    }
    for (const Node& node : graph_.nodes)
        if (!node.op->is_pure()) written_states_.push_back(tensors_[node.inputs[node.op->writes_state]]);
}

ggml_tensor* Lowering::constant(ValueId id, bool on_device) {
    ggml_tensor*& tensor = constants_[{id, on_device}];
    if (!tensor) {
        tensor = emit_.leaf(graph_.value(id).type);
        result_.constants.push_back({tensor, graph_.value(id).constant.get(), on_device});
    }
    return tensor;
}

ggml_tensor* Lowering::operand(ValueId id, bool on_device) {
    if (id == kNoValue) return nullptr;
    return graph_.value(id).kind == ValueKind::constant ? constant(id, on_device) : tensors_[id];
}

void Lowering::lower_native(const Node& node, const NodePlan& plan) {
    std::vector<ggml_tensor*> sources;
    for (ValueId id : node.inputs) sources.push_back(operand(id, plan.on_device));
    sources.resize(std::max(sources.size(), node.op->operands.size()));
    const auto types = graph_.operand_types(node);
    const auto outputs = node.op->lower(emit_, sources, Operands(types), node.attrs.get());
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        const bool changes_later = node.op->is_pure() && is_written_state(outputs[i]);
        tensors_[node.outputs[i]] = changes_later ? emit_.copy(outputs[i]) : outputs[i];
    }
}

/// A view of a state shows what a later write puts there; readers of the view want the old content.
bool Lowering::is_written_state(const ggml_tensor* tensor) const {
    const ggml_tensor* root = tensor->view_src ? tensor->view_src : tensor;
    return std::find(written_states_.begin(), written_states_.end(), root) != written_states_.end();
}

CustomNode& Lowering::new_custom(const Node& node, const NodePlan& plan) {
    const auto run = plan.kernel ? plan.kernel->run : node.op->reference;
    result_.custom_nodes.push_back(
        std::make_unique<CustomNode>(run, node.attrs, plan.one_thread, node.title()));
    return *result_.custom_nodes.back();
}

/// The ggml node that holds all outputs: an ordinary tensor for one output, a blob of bytes for several.
ggml_tensor* Lowering::custom_tensor(const Node& node, CustomNode& custom, std::vector<ggml_tensor*>& sources,
                                     std::span<const TensorType> outputs) {
    const int count = static_cast<int>(sources.size());
    if (!node.op->is_pure()) {
        custom.add_output(outputs[0], 0);
        ggml_tensor* state = tensors_[node.inputs[node.op->writes_state]];
        // ggml_custom_inplace gives a view of the state and appends our sources after it.
        ggml_tensor* out = ggml_custom_inplace(emit_.context(), state, sources.data(), count,
                                               &CustomNode::compute, GGML_N_TASKS_MAX, &custom);
        for (int i = 0; i < count; ++i) out->src[i] = sources[i];
        out->src[count] = nullptr;
        return out;
    }
    if (outputs.size() == 1) {
        custom.add_output(outputs[0], 0);
        const ggml_tensor* like = emit_.leaf(outputs[0]);
        return ggml_custom_4d(emit_.context(), like->type, like->ne[0], like->ne[1], like->ne[2], like->ne[3],
                              sources.data(), count, &CustomNode::compute, GGML_N_TASKS_MAX, &custom);
    }
    std::size_t bytes = 0;
    for (const TensorType& type : outputs) {
        custom.add_output(type, bytes);
        bytes += aligned(type.bytes());
    }
    return ggml_custom_4d(emit_.context(), GGML_TYPE_I8, static_cast<std::int64_t>(bytes), 1, 1, 1,
                          sources.data(), count, &CustomNode::compute, GGML_N_TASKS_MAX, &custom);
}

/// A variadic op over more operands than a ggml node can have: op(op(first nine), the rest ...).
/// Variadic ops are associative, so the value is the same.
ggml_tensor* Lowering::chain(const Node& node, std::vector<ValueId> inputs) {
    ggml_tensor* folded = nullptr;
    TensorType folded_type;
    std::size_t next = 0;
    while (next < inputs.size()) {
        NodePlan reference;
        CustomNode& custom = new_custom(node, reference);
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
        folded = custom_tensor(node, custom, sources, {&folded_type, 1});
    }
    return folded;
}

void Lowering::lower_custom(const Node& node, const NodePlan& plan) {
    if (node.inputs.size() > static_cast<std::size_t>(kMaxCustomInputs)) {
        tensors_[node.outputs[0]] = chain(node, node.inputs);
        return;
    }
    CustomNode& custom = new_custom(node, plan);
    std::vector<ggml_tensor*> sources;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const ValueId id = node.inputs[i];
        if (id == kNoValue) {
            custom.add_input({}, -1);
        } else if (plan.packed && static_cast<int>(i) == plan.kernel->packed_operand) {
            custom.add_packed(graph_.value(id).type, plan.packed);
        } else {
            custom.add_input(graph_.value(id).type, static_cast<int>(sources.size()));
            sources.push_back(operand(id, false));
        }
    }
    const auto types = graph_.output_types(node);
    ggml_tensor* out = custom_tensor(node, custom, sources, types);
    if (types.size() == 1) {
        tensors_[node.outputs[0]] = out;
        return;
    }
    std::size_t offset = 0;
    for (std::size_t i = 0; i < types.size(); ++i) {
        tensors_[node.outputs[i]] = emit_.typed_view(out, types[i], offset);
        offset += aligned(types[i].bytes());
    }
}

Status Lowering::build_graph() {
    const std::size_t capacity = tensor_count_ + 16;
    ggml_context* ctx =
        ggml_init({.mem_size = ggml_graph_overhead_custom(capacity, false) + ggml_tensor_overhead(),
                   .mem_buffer = nullptr,
                   .no_alloc = true});
    if (!ctx) return failure(Code::out_of_memory, "cannot allocate a ggml graph of {} nodes", capacity);
    result_.contexts.emplace_back(ctx);
    result_.graph = ggml_new_graph_custom(ctx, capacity, false);
    for (const Node& node : graph_.nodes) {
        const int first = ggml_graph_n_nodes(result_.graph);
        for (ValueId id : node.outputs) ggml_build_forward_expand(result_.graph, tensors_[id]);
        result_.node_ranges.emplace_back(first, ggml_graph_n_nodes(result_.graph));
    }
    for (const auto& [name, id] : graph_.outputs) {
        ggml_tensor* tensor = operand(id, false);
        ggml_build_forward_expand(result_.graph, tensor);
        result_.outputs.push_back(tensor);
    }
    return success();
}

Result<LoweredGraph> Lowering::run() {
    HR_TRY(reserve(graph_.inputs.size() + graph_.states.size()));
    add_leaves();
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
        const Node& node = graph_.nodes[i];
        HR_TRY(reserve(most_tensors(node)));
        if (plan_.nodes[i].implementation == Implementation::native)
            lower_native(node, plan_.nodes[i]);
        else
            lower_custom(node, plan_.nodes[i]);
    }
    HR_TRY(reserve(graph_.outputs.size()));
    HR_TRY(build_graph());
    return std::move(result_);
}

}  // namespace

Result<LoweredGraph> lower(const Plan& plan) { return Lowering(plan).run(); }

}  // namespace headrace
