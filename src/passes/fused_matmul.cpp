#include "passes/fused_matmul.h"

#include <algorithm>

#include "ops/catalog.h"
#include "passes/rewrite.h"

namespace headrace {

ValueId flattened(Graph& graph, ValueId id) {
    Value v = graph.value(id);
    if (v.type.rank() == 1) return id;
    v.type.shape.erase(v.type.shape.begin(), v.type.shape.end() - 1);
    graph.values.push_back(std::move(v));
    return static_cast<ValueId>(graph.values.size() - 1);
}

bool is_row(const Graph& graph, ValueId id, ValueId product) {
    const Value& v = graph.value(id);
    const Shape& shape = v.type.shape;
    if (shape.empty() || shape.back() != graph.value(product).type.shape.back()) return false;
    if (shape.size() == 1) return true;
    return v.kind == ValueKind::constant &&
           std::all_of(shape.begin(), shape.end() - 1, [](const Dim& d) { return d.is(1); });
}

std::optional<FusedMatmul> fused_matmul(const Graph& graph, const Node& node) {
    if (node.inputs.size() < 2) return std::nullopt;
    FusedMatmul p{.a = node.inputs[0], .b = node.inputs[1]};
    const auto operand = [&](std::size_t i) { return i < node.inputs.size() ? node.inputs[i] : kNoValue; };
    if (is(node, "gemm")) {
        p.bias = operand(2);
        p.transpose_b = attr<bool>(node, "b_transpose");
        if (attr<bool>(node, "a_transpose") || attr<double>(node, "alpha") != 1) return std::nullopt;
        if (p.bias != kNoValue &&
            (attr<double>(node, "beta") != 1 || !is_row(graph, p.bias, node.outputs[0])))
            return std::nullopt;
    } else if (is(node, "fused_matmul")) {
        p.bias = operand(2);
        p.residual = operand(3);
        p.transpose_b = attr<bool>(node, "transpose_b");
        p.activation = attr<std::string>(node, "activation");
        p.round_a = attr<bool>(node, "round_a");
        p.round_to_bf16 = attr<bool>(node, "round_to_bf16");
    } else if (!is(node, "matmul")) {
        return std::nullopt;
    }
    if (graph.value(p.b).type.rank() != 2) return std::nullopt;
    return p;
}

Result<Node> make_fused(Graph& graph, const FusedMatmul& product, std::vector<ValueId> outputs,
                        std::string label) {
    const OpDef& fused = catalog_op("fused_matmul");
    Node node{.op = &fused,
              .inputs = {product.a, product.b, product.bias, product.residual},
              .outputs = std::move(outputs),
              .label = std::move(label)};
    HR_ASSIGN(node.attrs, fused.make_attrs({{"transpose_b", product.transpose_b},
                                            {"activation", product.activation},
                                            {"round_a", product.round_a},
                                            {"round_to_bf16", product.round_to_bf16}}));
    if (product.bias != kNoValue) node.inputs[2] = flattened(graph, product.bias);
    while (node.inputs.back() == kNoValue) node.inputs.pop_back();
    return node;
}

}  // namespace headrace
