#include <optional>

#include "ops/catalog.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace headrace {
namespace {

constexpr std::size_t kB = 1;  // operand b of matmul, gemm and fused_matmul

/// The constant matrix of which `id` is the transpose.
std::optional<ValueId> transposed_constant(const Graph& graph, ValueId id) {
    const Node* transpose = producer(graph, id, "transpose");
    if (!transpose || graph.value(id).type.rank() != 2) return std::nullopt;
    const ValueId source = transpose->inputs[0];
    if (graph.value(source).kind != ValueKind::constant) return std::nullopt;
    const bool is_swap = permutation_of(graph, *transpose) == std::vector<std::int64_t>{1, 0};
    return is_swap ? std::optional(source) : std::nullopt;
}

/// The node with its operand b read the other way round; false where the op cannot.
Result<bool> read_transposed(Node& node, ValueId matrix) {
    if (is(node, "matmul")) {
        node.op = &catalog_op("fused_matmul");
        HR_ASSIGN(node.attrs, node.op->make_attrs({{"transpose_b", true}}));
    } else if (is(node, "gemm") || is(node, "fused_matmul")) {
        const std::string_view flag = is(node, "gemm") ? "b_transpose" : "transpose_b";
        NamedAttrs attrs = named_attrs(node);
        for (auto& [name, value] : attrs)
            if (name == flag) value = !std::get<bool>(value);
        HR_ASSIGN(node.attrs, node.op->make_attrs(attrs));
    } else {
        return false;
    }
    node.inputs[kB] = matrix;
    return true;
}

/// Turns a product with a transposed constant matrix into one that reads the matrix as it lies, so that large
/// mapped weights are not copied only to transpose them.
Result<Counts> absorb_transposed_weights(Graph& graph, const PassContext&) {
    auto uses = count_uses(graph);
    std::vector<bool> keep(graph.nodes.size(), true);
    std::int64_t absorbed = 0;
    for (Node& node : graph.nodes) {
        if (node.inputs.size() <= kB || node.inputs[kB] == kNoValue) continue;
        const ValueId transposed = node.inputs[kB];
        const auto matrix = transposed_constant(graph, transposed);
        if (!matrix) continue;
        HR_ASSIGN(const bool is_absorbed, read_transposed(node, *matrix));
        if (!is_absorbed) continue;
        ++absorbed;
        if (--uses[transposed] == 0) keep[graph.value(transposed).producer] = false;
    }
    graph.compact(keep);
    return Counts{{"transposes_absorbed", absorbed}};
}

}  // namespace

Pass absorb_transposed_weights_pass() {
    return {.name = "absorb_transposed_weights",
            .summary = "lets products read transposed constant matrices as they lie",
            .run = &absorb_transposed_weights,
            .after = {"eliminate_no_ops"}};
}

}  // namespace headrace
