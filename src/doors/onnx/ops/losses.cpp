#include "doors/onnx/ops/indexing.h"
#include "doors/onnx/reading/operators.h"

/// Losses of classes: what ONNX defines by other operators.
namespace headrace::onnx {
namespace {

/// Elements of a label's class, and what each counts.
struct Picked {
    Operand losses, weights;  ///< weights: null where each counts 1
};

/// Scores [n, c, ...] are logarithms of probabilities, labels [n, ...] classes; ignored ones count 0.
Picked picked(OpWriter& g, const Node& node, const Operand& scores) {
    Operand labels = as_indices(g, node.operand(1)), counted;
    const Shape shape = g.shape(scores), own = g.shape(labels);
    invalid_if(shape.size() < 2 || own.size() + 1 != shape.size(),
               "the scores have {} dimensions and the labels {}; of n classes it is one more", shape.size(),
               own.size());
    if (node.has("ignore_index")) {
        const Operand ignored = known(node.integer("ignore_index"), labels->type);
        counted = g.op("not_equal", {labels, ignored});
        labels = g.op("where", {counted, labels, known(0, labels->type)});
    }
    Shape column = own;
    column.insert(column.begin() + 1, 1);
    const Operand places = checked_indices(g, scores, g.reshape(labels, column), {1});
    const Operand taken = g.op("gather_elements", {scores, places}, {{"axis", 1}});
    Picked found{g.op("neg", {g.reshape(taken, own)}), nullptr};
    if (node.optional(2)) {
        const Operand weights = g.cast(node.optional(2), scores->type);
        found.weights = g.op("gather", {weights, checked_indices(g, weights, labels, {0})}, {{"axis", 0}});
    }
    if (counted) {
        const Operand ones = g.cast(counted, scores->type);
        found.weights = found.weights ? g.op("mul", {found.weights, ones}) : ones;
    }
    if (found.weights) found.losses = g.op("mul", {found.losses, found.weights});
    return found;
}

Operand total_of(OpWriter& g, const Operand& x) {
    std::vector<std::int64_t> axes;
    for (int i = 0; i < g.rank(x); ++i) axes.push_back(i);
    return g.op("reduce_sum", {x}, {{"axes", axes}});
}

Operand loss_of(OpWriter& g, const Node& node, const Operand& scores) {
    const std::string reduction = node.text("reduction", "mean");
    invalid_if(reduction != "none" && reduction != "mean" && reduction != "sum",
               "reduction is '{}'; none, mean and sum are ONNX's", reduction);
    const Picked found = picked(g, node, scores);
    if (reduction == "none") return found.losses;
    const Operand total = total_of(g, found.losses);
    if (reduction == "sum") return total;
    const Operand count =
        found.weights ? total_of(g, found.weights) : g.at_run_time(Item(g.size(found.losses)), scores->type);
    return g.op("div", {total, count});
}

Operand negative_log_likelihood(OpWriter& g, const Node& node) { return loss_of(g, node, node.x()); }

Results softmax_cross_entropy(OpWriter& g, const Node& node) {
    const Operand x = node.x();
    const NamedAttrs options{{"axes", std::vector<std::int64_t>{1}}, {"keep_dimensions", true}};
    invalid_if(g.rank(x) < 2, "the scores have {} dimensions; 2 are the least", g.rank(x));
    const Operand scores = g.op("sub", {x, g.op("reduce_log_sum_exp", {x}, options)});
    return {loss_of(g, node, scores), scores};
}

}  // namespace

std::span<const Operator> losses_operators() {
    static const Operator kOperators[] = {
        {"NegativeLogLikelihoodLoss", 12, negative_log_likelihood,
         "2..3 -> 1, ignore_index int, reduction string"},
        {"SoftmaxCrossEntropyLoss", 12, softmax_cross_entropy,
         "2..3 -> 1..2, ignore_index int, reduction string"},
    };
    return kOperators;
}

}  // namespace headrace::onnx
