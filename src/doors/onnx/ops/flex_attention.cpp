#include "doors/onnx/ops/attention.h"

/// Attention whose scores and weights graphs of the node change.
namespace headrace::onnx {
namespace {

/// What the graph that is this attribute makes of x; x where there is none.
Operand modified(OpWriter& g, const Node& node, std::string_view attribute, const Operand& x) {
    const auto branch = node.branch(attribute);
    if (!branch) return x;
    const std::vector<Operand> results =
        tensors_of(g.shared().branches.read_branch(g, *branch, {x}), "a modifier's result");
    invalid_if(results.size() != 1, "'{}' has {} results; it has one", attribute, results.size());
    const bool is_alike = results[0]->type == x->type && g.has_shape(results[0], g.shape(x));
    invalid_if(!is_alike, "'{}' makes {}{} of {}{}; it keeps both", attribute, name_of(results[0]->type),
               str(g.shape(results[0])), name_of(x->type), str(g.shape(x)));
    return results[0];
}

Operand flex_attention(OpWriter& g, const Node& node) {
    const Operand query = node.x(), value = node.operand(2);
    const ElementType type = query->type,
                      usual = type == ElementType::f64 ? ElementType::f64 : ElementType::f32,
                      through = node.has("softmax_precision")
                                    ? type_named(node.integer("softmax_precision"), "softmax_precision")
                                    : usual;
    const Operand products = g.cast(head_products(g, node, query, node.operand(1)), through);
    const Operand scores = modified(g, node, "score_mod", products);
    const Operand weights = modified(g, node, "prob_mod", g.op("softmax", {scores}, {{"axis", 3}}));
    return g.cast(head_sums(g, weights, g.cast(value, through)), type);
}

}  // namespace

std::span<const Operator> flex_attention_operators() {
    static const Operator kOperators[] = {
        {"FlexAttention", 1, flex_attention,
         "3 -> 1, prob_mod graph, scale float, score_mod graph, softmax_precision int", "ai.onnx.preview"}};
    return kOperators;
}

}  // namespace headrace::onnx
