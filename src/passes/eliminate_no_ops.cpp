#include <optional>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace headrace {
namespace {

/// The operand that the node's only output equals.
std::optional<ValueId> equal_operand(const Graph& graph, const Node& node) {
    if (!node.op->same_as || !node.op->is_pure() || node.outputs.size() != 1) return std::nullopt;
    const auto types = graph.operand_types(node);
    const std::optional<int> i = node.op->same_as(Operands(types), node.attrs.get());
    if (!i || node.inputs[*i] == kNoValue) return std::nullopt;
    const ValueId operand = node.inputs[*i];
    // Equal elements are not enough: readers infer their types from the operand's.
    if (graph.value(operand).type != graph.value(node.outputs[0]).type) return std::nullopt;
    return operand;
}

}  // namespace

Result<Counts> eliminate_no_ops(Graph& graph, const PassContext&) {
    const auto writers = state_writers(graph);
    Replacements replacements(graph.values.size());
    std::vector<bool> keep(graph.nodes.size(), true);
    std::int64_t removed = 0;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        Node& node = graph.nodes[i];
        replacements.rewrite_operands(node);
        const auto operand = equal_operand(graph, node);
        // A copy of a state's old version may be read after the write; the state itself may not.
        if (!operand || writers[*operand] >= 0) continue;
        replacements.replace(node.outputs[0], *operand);
        keep[i] = false;
        ++removed;
    }
    replacements.rewrite_outputs(graph);
    graph.compact(keep);
    return Counts{{"nodes_removed", removed}};
}

}  // namespace headrace
