#include <algorithm>
#include <numeric>

#include "passes/pattern.h"

namespace headrace {
namespace {

/// The scores of attention before the softmax: scale · query · keyᵀ + mask.
struct Scores {
    ValueId query = kNoValue, key_transposed = kNoValue, mask = kNoValue;
    double scale = 1;
};

/// What `id` is times a number or divided by one, and that number; else itself and 1.
std::pair<ValueId, double> unscaled(const Patterns& p, ValueId id) {
    if (!p.is_used_once(id)) return {id, 1};
    if (const Node* mul = p.producer(id, "mul")) {
        for (const auto& [x, factor] : Patterns::both_ways(*mul))
            if (const auto number = p.scalar(factor); number && p.type(x) == p.type(id)) return {x, *number};
    } else if (const Node* div = p.producer(id, "div")) {
        const auto number = p.scalar(div->inputs[1]);
        if (number && *number != 0 && p.type(div->inputs[0]) == p.type(id))
            return {div->inputs[0], 1 / *number};
    }
    return {id, 1};
}

/// What `id` is when it is a product; it or its operands may be scaled.
std::optional<Scores> scaled_product(const Patterns& p, ValueId id) {
    const auto [scores, scale] = unscaled(p, id);
    const Node* product = p.producer(scores, "matmul");
    if (!product || !p.is_used_once(id) || !p.is_used_once(scores)) return std::nullopt;
    const auto [query, of_query] = unscaled(p, product->inputs[0]);
    const auto [key, of_key] = unscaled(p, product->inputs[1]);
    return Scores{query, key, kNoValue, scale * of_query * of_key};
}

std::optional<Scores> masked_product(const Patterns& p, ValueId id) {
    if (const auto plain = scaled_product(p, id)) return plain;
    const Node* add = p.is_used_once(id) ? p.producer(id, "add") : nullptr;
    if (!add) return std::nullopt;
    for (const auto& [product, mask] : Patterns::both_ways(*add)) {
        auto scores = scaled_product(p, product);
        if (!scores || p.type(product) != p.type(id)) continue;
        scores->mask = mask;
        return scores;
    }
    return std::nullopt;
}

/// The same extents but for the last two.
bool have_equal_batches(const Shape& a, const Shape& b) {
    return a.size() == b.size() && a.size() >= 2 && std::equal(a.begin(), a.end() - 2, b.begin());
}

/// The heads of which `id` repeats each one several times, in place: reshape(expand(reshape(x))).
std::optional<ValueId> repeated_heads(const Patterns& p, ValueId id) {
    const Node* joined = p.producer(id, "reshape");
    const Node* expanded = joined ? p.producer(joined->inputs[0], "expand") : nullptr;
    const Node* split = expanded ? p.producer(expanded->inputs[0], "reshape") : nullptr;
    if (!split) return std::nullopt;
    const Shape &x = p.type(split->inputs[0]).shape, &groups = p.type(joined->inputs[0]).shape,
                &apart = p.type(expanded->inputs[0]).shape, &whole = p.type(id).shape;
    if (x.size() < 3 || groups.size() != x.size() + 1 || whole.size() != x.size()) return std::nullopt;
    const std::size_t head = x.size() - 3;
    // x[.., g, n, d] -> [.., g, 1, n, d] -> [.., g, r, n, d] -> [.., g · r, n, d]
    Shape one = x;
    one.insert(one.begin() + static_cast<std::ptrdiff_t>(head) + 1, Dim(1));
    if (apart != one) return std::nullopt;
    one[head + 1] = groups[head + 1];
    if (groups != one || x[head].is_symbolic() || groups[head + 1].is_symbolic()) return std::nullopt;
    Shape product = x;
    product[head] = x[head].size() * groups[head + 1].size();
    return whole == product ? std::optional(split->inputs[0]) : std::nullopt;
}

/// The softmax that weights are; it may have zeros for NaN, which is how exporters write that a row with
/// every key masked is 0. What PyTorch's attention computes of NaN in other rows it does not say then, and
/// neither do we.
struct Weights {
    const Node* softmax = nullptr;
    bool zero_if_masked = false;
};
Weights softmax_of(const Patterns& p, ValueId id) {
    const Node* plain = p.producer(id, "softmax");
    if (plain) return {p.is_used_once(id) ? plain : nullptr, false};
    const Node* choice = p.is_used_once(id) ? p.producer(id, "where") : nullptr;
    const Node* is_nan = choice ? p.producer(choice->inputs[0], "is_nan") : nullptr;
    if (!is_nan || is_nan->inputs[0] != choice->inputs[2] || p.scalar(choice->inputs[1]) != 0.0) return {};
    return {p.producer(choice->inputs[2], "softmax"), true};
}

/// Whether a transposition exchanges two neighbours, the second of which is `from_end`, and nothing else.
bool exchanges(const Graph& graph, const Node& transpose, std::size_t from_end) {
    const auto permutation = permutation_of(graph, transpose);
    std::vector<std::int64_t> expected(permutation.size());
    if (expected.size() < from_end + 1) return false;
    std::iota(expected.begin(), expected.end(), 0);
    std::swap(expected[expected.size() - from_end - 1], expected[expected.size() - from_end]);
    return permutation == expected;
}

bool exchanges_heads_and_rows(const Graph& graph, const Node& transpose) {
    return exchanges(graph, transpose, 2);
}

/// Matrices whose batches are one dimension while they are transposed, as exporters write the keys, are
/// transposed as they lie: reshape(transpose(reshape(x))) is transpose(reshape(x)).
Result<bool> recognize_transposed_matrices(Patterns& p, NodeId at) {
    const Node& node = p.graph().node(at);
    if (!is(node, "reshape")) return false;
    const ValueId turned = node.inputs[0];
    const Node* transpose = p.is_used_once(turned) ? p.producer(turned, "transpose") : nullptr;
    const Node* joined = transpose ? p.producer(transpose->inputs[0], "reshape") : nullptr;
    if (!joined || !exchanges(p.graph(), *transpose, 1)) return false;
    const Shape &inner = p.type(turned).shape, &whole = p.type(node.outputs[0]).shape;
    if (whole.size() < 2 || !std::equal(inner.end() - 2, inner.end(), whole.end() - 2)) return false;
    Shape apart = whole;
    std::swap(apart[apart.size() - 1], apart[apart.size() - 2]);
    std::vector<std::int64_t> order(whole.size());
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    const ValueId source = joined->inputs[0];
    if (p.type(source).shape == apart) return p.replace(at, "transpose", {source}, {{"permutation", order}});
    const NodeId inner_node = p.graph().value(turned).producer;
    HR_ASSIGN(const bool is_replaced, p.replace(inner_node, "reshape", {source}, {{"new_shape", apart}}));
    if (!is_replaced) return false;
    p.graph().value(turned).type.shape = std::move(apart);
    return p.replace(at, "transpose", {turned}, {{"permutation", order}});
}

/// softmax(scale · query · keyᵀ + mask) · value, where the keys were transposed for it.
Result<bool> recognize_attention(Patterns& p, NodeId at) {
    const Node& node = p.graph().node(at);
    if (!is(node, "matmul")) return false;
    const auto [softmax, zero_if_masked] = softmax_of(p, node.inputs[0]);
    if (!softmax) return false;
    const std::int64_t rank = p.type(node.inputs[0]).rank(), axis = attr<std::int64_t>(*softmax, "axis");
    const auto scores = masked_product(p, softmax->inputs[0]);
    if (!scores || (axis < 0 ? axis + rank : axis) != rank - 1) return false;
    const ValueId query = scores->query, turned = scores->key_transposed, value = node.inputs[1];
    if (!have_equal_batches(p.type(query).shape, p.type(turned).shape) ||
        !have_equal_batches(p.type(query).shape, p.type(value).shape) || !p.may_transpose(turned))
        return false;
    const Node& transpose = *p.producer(turned, "transpose");
    const bool is_plain = exchanges(p.graph(), transpose, 1);
    const ValueId key = is_plain ? transpose.inputs[0] : turned;
    HR_ASSIGN(const bool is_replaced,
              p.replace(at, "scaled_dot_product_attention", {query, key, value, scores->mask},
                        {{"scale", scores->scale}, {"zero_if_masked", zero_if_masked}}));
    if (is_replaced && !is_plain) HR_TRY(p.transpose(turned));
    return is_replaced;
}

/// Attention whose keys and values were repeated for groups of query heads reads them as they are.
Result<bool> recognize_grouped_attention(Patterns& p, NodeId at) {
    const Node& node = p.graph().node(at);
    if (!is(node, "scaled_dot_product_attention")) return false;
    const auto keys = repeated_heads(p, node.inputs[1]), values = repeated_heads(p, node.inputs[2]);
    if (!keys || !values) return false;
    const Shape &k = p.type(*keys).shape, &v = p.type(*values).shape;
    if (k[k.size() - 3] != v[v.size() - 3]) return false;
    std::vector<ValueId> operands = node.inputs;
    operands[1] = *keys, operands[2] = *values;
    return p.replace(at, OpName(*node.op), std::move(operands), named_attrs(node));
}

/// Attention between transpositions that exchange heads and rows reads and writes them as they lie.
Result<bool> recognize_attention_of_rows(Patterns& p, NodeId at) {
    const auto exchanged = [&](ValueId id) -> std::optional<ValueId> {
        const Node* node = p.producer(id, "transpose");
        return node && exchanges_heads_and_rows(p.graph(), *node) ? std::optional(node->inputs[0])
                                                                  : std::nullopt;
    };
    const Node& node = p.graph().node(at);
    if (!is(node, "transpose") || !p.is_used_once(node.inputs[0])) return false;
    const Node* attention = p.producer(node.inputs[0], "scaled_dot_product_attention");
    if (!attention || attr<bool>(*attention, "heads_after_rows") ||
        !exchanges_heads_and_rows(p.graph(), node))
        return false;
    std::vector<ValueId> operands = attention->inputs;
    for (std::size_t i = 0; i < 3; ++i) {
        const auto source = exchanged(operands[i]);
        if (!source) return false;
        operands[i] = *source;
    }
    NamedAttrs attrs = named_attrs(*attention);
    for (auto& [name, value] : attrs)
        if (name == "heads_after_rows") value = true;
    return p.replace(at, OpName(*attention->op), std::move(operands), attrs);
}

}  // namespace

Compositions recognize_attention_compositions() {
    return {
        {.name = "transposed_matrices", .recognize = &recognize_transposed_matrices},
        {.name = "attentions", .recognize = &recognize_attention, .after = {"transposed_matrices"}},
        {.name = "grouped_attentions", .recognize = &recognize_grouped_attention, .after = {"attentions"}},
        {.name = "attentions_of_rows",
         .recognize = &recognize_attention_of_rows,
         .after = {"grouped_attentions"}},
    };
}

}  // namespace headrace
