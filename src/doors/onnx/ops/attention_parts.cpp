#include <limits>

#include "doors/onnx/ops/attention.h"
#include "doors/onnx/ops/padding.h"
#include "doors/onnx/reading/numbers.h"

/// Attention as ONNX defines it by other operators.
namespace headrace::onnx {
namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();

/// [batch or 1, 1, steps, total]: which keys a query sees by its place; null for all of them.
Operand seen_keys(OpWriter& g, const Node& node, const Shape& query, const Dim& total) {
    const std::int64_t left = node.integer("left_window_size", -1),
                       right = node.integer("right_window_size", -1);
    const bool is_causal = node.is_one("is_causal", false);
    Operand lengths = node.optional(6);
    if (lengths) lengths = g.reshape(g.cast(lengths, ElementType::i64), {query[0], 1, 1, 1});
    const Operand keys = g.reshape(g.positions(total), {1, 1, 1, total});
    Operand holds;
    const auto narrow = [&](const Operand& also) {
        holds = holds ? g.op("logical_and", {holds, also}) : also;
    };
    if (lengths) narrow(g.op("lesser", {keys, lengths}));
    if (!is_causal && left < 0 && right < 0) return holds;
    Operand places = g.reshape(g.positions(query[2]), {1, 1, query[2], 1});
    if (node.optional(4))
        places = g.plus(places, Item(extents_of_rank(g, node.operand(4), 4, "past_key (input 4)")[2]));
    else if (lengths)
        places = g.op("add", {places, g.op("sub", {lengths, g.at_run_time(query[2], ElementType::i64)})});
    if (is_causal) narrow(g.op("lesser_or_equal", {keys, places}));
    if (left >= 0) narrow(g.op("greater_or_equal", {keys, g.plus(places, Item(-left))}));
    if (right >= 0) narrow(g.op("lesser_or_equal", {keys, g.plus(places, Item(right))}));
    return holds;
}

/// What is added to the scores; null for nothing.
Operand score_bias(OpWriter& g, const Node& node, const Shape& query, const Dim& total, ElementType type) {
    Operand bias = node.optional(3);
    if (bias && bias->type == ElementType::boolean) bias = shut_where_not(g, bias, kHidden, type);
    if (bias && node.opset >= 24) {  // keys behind the mask's last are not seen
        invalid_if(g.rank(bias) == 0, "attn_mask (input 3) is a scalar; it ends with the number of keys");
        Shape nothing(static_cast<std::size_t>(g.rank(bias)), 0), behind = nothing;
        behind.back() = total - g.shape(bias).back();
        if (!is_same(behind.back(), 0)) bias = with_margin(g, bias, nothing, behind, "constant", kHidden);
    }
    if (const Operand holds = seen_keys(g, node, query, total)) {
        const Operand unseen = shut_where_not(g, holds, kHidden, type);
        bias = bias ? g.op("add", {g.cast(bias, type), unseen}) : unseen;
    }
    return bias ? g.cast(bias, type) : bias;
}

/// The root of the scale, by which queries and keys are multiplied alike.
Operand root_of_scale(OpWriter& g, const Node& node, const Dim& width, ElementType type) {
    const auto root = [&](const Operand& x) { return g.op("sqrt", {x}); };
    const Operand scale = node.has("scale")
                              ? known(node.real("scale", 1), ElementType::f32)
                              : g.op("reciprocal", {root(g.at_run_time(width, ElementType::f32))});
    return g.cast(root(scale), type);
}

/// A query of which no key is seen has weights of 0.
Operand weights_of(OpWriter& g, const Operand& scores, const Operand& bias, ElementType through) {
    Operand weights = g.cast(g.op("softmax", {g.cast(scores, through)}, {{"axis", 3}}), scores->type);
    if (!bias) return weights;
    const std::vector<std::int64_t> last{g.rank(bias) - 1};
    const Operand most = g.op("reduce_max", {bias}, {{"axes", last}, {"keep_dimensions", true}});
    const Operand is_blind = g.op("equal", {most, known(kHidden, bias->type)});
    return g.op("where", {is_blind, known(0.0, weights->type), weights});
}

/// How many rows there are for each head of the keys.
Dim rows_of_group(const Shape& heads, const Dim& groups) {
    if (is_same(heads[1], groups)) return heads[2];
    const bool is_open = heads[1].is_symbolic() || groups.is_symbolic();
    invalid_if(!is_open && (groups.is(0) || heads[1].size() % groups.size() != 0),
               "{} heads of queries do not divide into {} of keys", heads[1].str(), groups.str());
    return divided_down(heads[1], groups) * heads[2];
}

}  // namespace

Operand head_products(OpWriter& g, const Node& node, const Operand& query, const Operand& key) {
    const Shape q = extents_of_rank(g, query, 4, "the queries"), k = extents_of_rank(g, key, 4, "the keys");
    const Operand root = root_of_scale(g, node, q[3], query->type);
    const Shape grouped{q[0], k[1], rows_of_group(q, k[1]), q[3]};
    const Operand scaled = g.op("mul", {g.reshape(query, grouped), root});
    const Operand turned = g.op("mul", {g.transpose(key, {0, 1, 3, 2}), root});
    return g.reshape(g.op("matmul", {scaled, turned}), {q[0], q[1], q[2], k[2]});
}

Operand head_sums(OpWriter& g, const Operand& weights, const Operand& value) {
    const Shape w = extents_of_rank(g, weights, 4, "the weights"),
                v = extents_of_rank(g, value, 4, "the values");
    const Operand grouped = g.reshape(weights, {w[0], v[1], rows_of_group(w, v[1]), w[3]});
    return g.reshape(g.op("matmul", {grouped, value}), {w[0], w[1], w[2], v[3]});
}

Attended attended_by_parts(OpWriter& g, const Node& node, const Operand& query, const Operand& key,
                           const Operand& value) {
    const Shape q = extents_of_rank(g, query, 4, "the queries");
    const Dim total = extents_of_rank(g, key, 4, "the keys")[2];
    const ElementType type = query->type;
    const Operand products = head_products(g, node, query, key);
    Operand scores = products;
    const double cap = node.real("softcap", 0);
    if (cap != 0) scores = g.times(g.op("tanh", {g.op("div", {scores, known(cap, type)})}), cap);
    const Operand capped = scores, bias = score_bias(g, node, q, total, type);
    if (bias) scores = g.op("add", {scores, bias});
    const ElementType through = node.has("softmax_precision")
                                    ? type_named(node.integer("softmax_precision"), "softmax_precision")
                                    : type;
    const Operand weights = weights_of(g, scores, bias, through);
    const Operand given[] = {products, capped, scores, weights};
    const std::int64_t mode = node.integer("qk_matmul_output_mode", 0);
    invalid_if(mode < 0 || mode > 3, "qk_matmul_output_mode is {}; 0 to 3", mode);
    return {head_sums(g, weights, value), node.wants(3) ? given[mode] : nullptr};
}

}  // namespace headrace::onnx
