#include "lower/lower.h"

#include <algorithm>

#include "ggml.h"
#include "lower/node_lowering.h"
#include "plan/placement.h"

namespace headrace {

void GgmlContextFree::operator()(ggml_context* ctx) const { ggml_free(ctx); }

namespace {

class Lowering {
public:
    explicit Lowering(const Plan& plan) : plan_(plan), graph_(plan.graph) {
        result_.values.resize(graph_.values.size());
    }

    Result<LoweredGraph> run();

private:
    /// ggml aborts when a context is full, so every node starts with room for the most it may create.
    Status reserve(std::size_t tensors);
    Status add_context(std::size_t tensors);
    void add_leaves();
    void note_tensors();
    bool is_taken_as_truth(ValueId id) const;
    Status build_graph(NodeLowering& nodes);

    const Plan& plan_;
    const Graph& graph_;
    LoweredGraph result_;
    Emit emit_{nullptr};
    std::size_t tensor_count_ = 0;
    ggml_tensor* last_ = nullptr;  ///< of the newest context, among those that are noted or no node's
};

Status Lowering::add_context(std::size_t tensors) {
    ggml_context* ctx =
        ggml_init({.mem_size = tensors * ggml_tensor_overhead(), .mem_buffer = nullptr, .no_alloc = true});
    if (!ctx) return failure(Code::out_of_memory, "cannot allocate a ggml context for {} tensors", tensors);
    result_.contexts.emplace_back(ctx);
    emit_ = Emit(ctx);
    last_ = nullptr;
    tensor_count_ += tensors;
    return success();
}

Status Lowering::reserve(std::size_t tensors) {
    constexpr std::size_t kChunk = 1024;
    ggml_context* ctx = emit_.context();
    if (ctx && ggml_get_mem_size(ctx) - ggml_used_mem(ctx) >= tensors * ggml_tensor_overhead())
        return success();
    return add_context(std::max(tensors, kChunk));
}

void Lowering::add_leaves() {
    for (ValueId id : graph_.inputs) {
        result_.values[id] = emit_.leaf(graph_.value(id).type);
        ggml_set_input(result_.values[id]);
        result_.inputs.push_back(result_.values[id]);
    }
    for (ValueId id : graph_.states) {
        result_.values[id] = emit_.leaf(graph_.value(id).type);
        result_.states.push_back(result_.values[id]);
    }
}

/// What the newest context has more than before, as the tensors of a node.
void Lowering::note_tensors() {
    const auto next = [&] {
        return last_ ? ggml_get_next_tensor(emit_.context(), last_) : ggml_get_first_tensor(emit_.context());
    };
    for (ggml_tensor* t = next(); t; t = next()) {
        result_.node_tensors.push_back(t);
        last_ = t;
    }
    result_.tensor_ends.push_back(result_.node_tensors.size());
    result_.custom_ends.push_back(result_.custom_nodes.size());
}

/// Truth that only nodes on a device read, as it was before it became bytes: those are not computed.
bool Lowering::is_taken_as_truth(ValueId id) const {
    if (!Emit::is_for_cpu(result_.values[id])) return false;
    const auto is_it = [&](const auto& output) { return output.second == id; };
    if (std::ranges::any_of(graph_.outputs, is_it)) return false;
    bool is_read = false;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
        const auto& inputs = graph_.nodes[i].inputs;
        if (std::ranges::find(inputs, id) == inputs.end()) continue;
        if (!plan_.nodes[i].on_device) return false;
        is_read = true;
    }
    return is_read;
}

Status Lowering::build_graph(NodeLowering& nodes) {
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
        for (ValueId id : node.outputs)
            if (!is_taken_as_truth(id)) ggml_build_forward_expand(result_.graph, result_.values[id]);
        result_.node_ranges.emplace_back(first, ggml_graph_n_nodes(result_.graph));
    }
    for (const auto& [name, id] : graph_.outputs) {
        const bool is_constant = graph_.value(id).kind == ValueKind::constant;
        ggml_tensor* tensor = is_constant ? nodes.constant(id, false, emit_) : result_.values[id];
        ggml_build_forward_expand(result_.graph, tensor);
        result_.outputs.push_back(tensor);
    }
    return success();
}

Result<LoweredGraph> Lowering::run() {
    HR_TRY(reserve(graph_.inputs.size() + graph_.states.size()));
    add_leaves();
    NodeLowering nodes(plan_, result_);
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
        const Node& node = graph_.nodes[i];
        HR_TRY(reserve(most_tensors(graph_, node)));
        nodes.add_constants(i, emit_);
        for (ggml_tensor* t = last_ ? last_ : ggml_get_first_tensor(emit_.context()); t;
             t = ggml_get_next_tensor(emit_.context(), t))
            last_ = t;  // leaves are no node's
        const auto outputs = nodes.lower(i, emit_, result_.custom_nodes);
        for (std::size_t o = 0; o < outputs.size(); ++o) result_.values[node.outputs[o]] = outputs[o];
        note_tensors();
    }
    HR_TRY(reserve(graph_.outputs.size()));
    HR_TRY(build_graph(nodes));
    return std::move(result_);
}

}  // namespace

Result<LoweredGraph> lower(const Plan& plan) { return Lowering(plan).run(); }

}  // namespace headrace
