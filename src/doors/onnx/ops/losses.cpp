#include "doors/onnx/ops/indexing.h"
#include "doors/onnx/reading/numbers.h"

/// Losses, as ONNX defines them by other operators.
namespace headrace::onnx {
namespace {

/// Of logarithms of probabilities [batch, classes, ...] and classes [batch, ...].
Operand negative_log_likelihood(OpWriter& g, const Node& node, const Operand& x, const Operand& target,
                                const Operand& weight) {
    const std::string reduction = node.text("reduction", "mean");
    invalid_if(reduction != "none" && reduction != "sum" && reduction != "mean",
               "reduction is '{}'; none, sum or mean", reduction);
    const Shape own = g.shape(target);
    invalid_if(own.empty() || g.rank(x) != static_cast<int>(own.size()) + 1,
               "the classes have {} dimensions for an input of {}; it has one more than they", own.size(),
               g.rank(x));
    Shape column = own;
    column.insert(column.begin() + 1, 1);
    Operand classes = g.reshape(g.cast(target, ElementType::i64), column), ignored;
    if (node.has("ignore_index")) {
        ignored = g.op("equal", {classes, known(node.integer("ignore_index"), ElementType::i64)});
        classes = g.op("where", {ignored, known(0, ElementType::i64), classes});
    }
    const auto without_ignored = [&](const Operand& y) {
        return g.reshape(ignored ? g.op("where", {ignored, known(0, y->type), y}) : y, own);
    };
    const Operand taken = elements_at(g, x, checked_indices(g, x, classes, {1}), 1);
    Operand loss = g.op("neg", {without_ignored(taken)}), share;
    if (weight) {
        const Operand checked = checked_indices(g, weight, classes, {0});
        share = without_ignored(g.op("gather", {weight, checked}, {{"axis", 0}}));
    } else if (ignored) {
        share = without_ignored(g.filled(1, x->type, column));
    }
    if (share) loss = g.op("mul", {loss, share});
    if (reduction == "none") return loss;
    const std::vector<std::int64_t> every = counted_list(static_cast<std::int64_t>(own.size()));
    const auto sum = [&](const Operand& y) { return g.op("reduce_sum", {y}, {{"axes", every}}); };
    if (reduction == "sum") return sum(loss);
    if (share) return g.op("div", {sum(loss), sum(share)});
    return g.op("reduce_mean", {loss}, {{"axes", every}});
}

Operand negative_log_likelihood_loss(OpWriter& g, const Node& node) {
    return negative_log_likelihood(g, node, node.x(), node.operand(1), node.optional(2));
}

Results softmax_cross_entropy_loss(OpWriter& g, const Node& node) {
    const Operand x = node.x();
    invalid_if(g.rank(x) < 2, "the scores have {} dimensions; 2 are the least", g.rank(x));
    const auto [last, order] = g.swap_to_last(x, 1);
    const Operand most =
        g.op("reduce_max", {last},
             {{"axes", std::vector<std::int64_t>{g.rank(x) - 1}}, {"keep_dimensions", true}});
    const Operand apart = g.op("sub", {last, most});
    const Operand sum = g.op("reduce_sum", {g.op("exp", {apart})},
                             {{"axes", std::vector<std::int64_t>{g.rank(x) - 1}}, {"keep_dimensions", true}});
    const Operand logs = g.transpose(g.op("sub", {apart, g.op("log", {sum})}), order);
    return {negative_log_likelihood(g, node, logs, node.operand(1), node.optional(2)), logs};
}

}  // namespace

std::span<const Operator> losses_operators() {
    static const Operator kOperators[] = {
        {"NegativeLogLikelihoodLoss", 12, negative_log_likelihood_loss},
        {"SoftmaxCrossEntropyLoss", 12, softmax_cross_entropy_loss},
    };
    return kOperators;
}

}  // namespace headrace::onnx
