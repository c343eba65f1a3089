#include <algorithm>

#include "passes/evaluate.h"
#include "passes/passes.h"

namespace headrace {
namespace {

bool has_constant_operands(const Graph& graph, const Node& node) {
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
        return id == kNoValue || graph.value(id).kind == ValueKind::constant;
    });
}

/// Types without symbols; of one node a constant shape attribute may still name one.
bool has_concrete_outputs(const Graph& graph, const Node& node) {
    return std::all_of(node.outputs.begin(), node.outputs.end(),
                       [&](ValueId id) { return graph.value(id).type.is_concrete(); });
}

bool is_within(const FoldLimits& limits, const Graph& graph, const Node& node) {
    std::size_t in = 0, out = 0;
    for (ValueId id : node.inputs)
        if (id != kNoValue) in += graph.value(id).type.bytes();
    // Each fits the address space; their sum is cut off rather than wrapped.
    for (ValueId id : node.outputs) out += std::min(graph.value(id).type.bytes(), SIZE_MAX - out);
    if (node.op->cost && !node.op->folds_always) {
        const auto types = graph.operand_types(node);
        const auto outputs = graph.output_types(node);
        if (node.op->cost(Operands(types), outputs, node.attrs.get()).flops > limits.flops) return false;
    }
    if (node.op->folds_always || out <= std::max(in, limits.always_bytes)) return true;
    return static_cast<double>(out) <= limits.growth * static_cast<double>(in) && out <= limits.grown_bytes;
}

}  // namespace

Result<Counts> fold_constants(Graph& graph, const PassContext& context) {
    std::vector<bool> keep(graph.nodes.size(), true);
    std::int64_t folded = 0, skipped = 0, bytes = 0;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        const Node& node = graph.nodes[i];
        if (!node.op->is_pure() || !has_constant_operands(graph, node) || !has_concrete_outputs(graph, node))
            continue;
        if (!is_within(context.fold, graph, node)) {
            ++skipped;
            continue;
        }
        HR_TRY(make_constant(graph, node));
        for (ValueId id : node.outputs)
            bytes += static_cast<std::int64_t>(graph.value(id).constant->bytes.size());
        keep[i] = false;
        ++folded;
    }
    graph.compact(keep);
    return Counts{{"nodes_folded", folded}, {"nodes_too_large", skipped}, {"bytes_made", bytes}};
}

}  // namespace headrace
