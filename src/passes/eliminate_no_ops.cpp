#include <optional>

#include "passes/eliminate_no_ops.h"
#include "passes/rewrite.h"

namespace headrace {
namespace {

/// Which operand a product with one, or a quotient by one, is. A sum with zero is not the same: of -0 it is
/// +0.
std::optional<int> times_one(const Graph& graph, const Node& node) {
    const bool is_mul = is(node, "mul");
    if (!is_mul && !is(node, "div")) return std::nullopt;
    if (scalar_constant(graph, node.inputs[1]) == 1.0) return 0;
    if (is_mul && scalar_constant(graph, node.inputs[0]) == 1.0) return 1;
    return std::nullopt;
}

/// The operand that the node's only output equals.
std::optional<ValueId> equal_operand(const Graph& graph, const Node& node) {
    if (!node.op->is_pure() || node.outputs.size() != 1) return std::nullopt;
    const std::optional<int> i = node.op->same_as
                                     ? node.op->same_as(Operands(graph.operand_types(node)), node.attrs.get())
                                     : times_one(graph, node);
    if (!i || node.inputs[*i] == kNoValue) return std::nullopt;
    const ValueId operand = node.inputs[*i];
    // Equal elements are not enough: readers infer their types from the operand's.
    if (graph.value(operand).type != graph.value(node.outputs[0]).type) return std::nullopt;
    return operand;
}

/// A view of a state that is written later shows its old content: it must be taken where it stands.
bool reads_no_state(const Graph& graph, const std::vector<NodeId>& writers, ValueId id) {
    const Value& v = graph.value(id);
    if (v.kind != ValueKind::result) return true;
    const Node& node = graph.node(v.producer);
    return node.inputs.empty() || node.inputs[0] == kNoValue || writers[node.inputs[0]] < 0;
}

/// A reshape of a reshape, or a transpose of a transpose, reads the first one's operand itself.
Result<bool> merge_with_producer(const Graph& graph, Node& node) {
    const bool is_reshape = is(node, "reshape"), is_transpose = is(node, "transpose");
    if (!is_reshape && !is_transpose) return false;
    const Node* first = producer(graph, node.inputs[0], OpName(*node.op));
    if (!first) return false;
    if (is_transpose) {
        const auto inner = permutation_of(graph, *first), outer = permutation_of(graph, node);
        std::vector<std::int64_t> both;
        for (std::int64_t axis : outer) both.push_back(inner[static_cast<std::size_t>(axis)]);
        HR_ASSIGN(node.attrs, node.op->make_attrs({{"permutation", both}}));
    }
    node.inputs[0] = first->inputs[0];
    return true;
}

}  // namespace

Result<Counts> eliminate_no_ops(Graph& graph, const PassContext&) {
    const auto writers = state_writers(graph);
    Replacements replacements(graph.values.size());
    std::vector<bool> keep(graph.nodes.size(), true);
    std::int64_t removed = 0, merged = 0;
    auto uses = count_uses(graph);
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        Node& node = graph.nodes[i];
        replacements.rewrite_operands(node);
        const ValueId between = node.inputs.empty() ? kNoValue : node.inputs[0];
        const bool may_merge = between != kNoValue && reads_no_state(graph, writers, between);
        HR_ASSIGN(const bool is_merged, may_merge ? merge_with_producer(graph, node) : Result<bool>(false));
        if (is_merged) {
            ++merged;
            ++uses[node.inputs[0]];
            if (--uses[between] == 0) {
                keep[static_cast<std::size_t>(graph.value(between).producer)] = false;
                --uses[node.inputs[0]];
            }
        }
        const auto operand = equal_operand(graph, node);
        // A copy of a state's old version may be read after the write; the state itself may not.
        if (!operand || writers[*operand] >= 0) continue;
        replacements.replace(node.outputs[0], *operand);
        uses[*operand] += uses[node.outputs[0]] - 1;
        keep[i] = false;
        ++removed;
    }
    replacements.rewrite_outputs(graph);
    graph.compact(keep);
    return Counts{{"nodes_removed", removed}, {"chains_merged", merged}};
}

Pass eliminate_no_ops_pass() {
    // Before all patterns, which no-ops would hide.
    return {.name = "eliminate_no_ops",
            .summary = "removes nodes that equal one of their operands",
            .run = &eliminate_no_ops,
            .after = {"eliminate_dead_code"}};
}

}  // namespace headrace
