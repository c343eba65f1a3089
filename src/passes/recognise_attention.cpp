#include <algorithm>

#include "passes/pattern.h"

namespace headrace {
namespace {

/// The scores of attention before the softmax: scale · query · keyᵀ + mask.
struct Scores {
    ValueId query = kNoValue, key_transposed = kNoValue, mask = kNoValue;
    double scale = 1;
};

/// What `id` is when it is a product, perhaps times a number or divided by one.
std::optional<Scores> scaled_product(const Patterns& p, ValueId id) {
    double scale = 1;
    ValueId unscaled = id;
    if (const Node* mul = p.producer(id, "mul")) {
        for (const auto& [x, factor] : Patterns::both_ways(*mul))
            if (const auto number = p.scalar(factor)) unscaled = x, scale = *number;
    } else if (const Node* div = p.producer(id, "div")) {
        const auto number = p.scalar(div->inputs[1]);
        if (number && *number != 0) unscaled = div->inputs[0], scale = 1 / *number;
    }
    const Node* product = p.producer(unscaled, "matmul");
    if (!product || !p.is_used_once(id) || !p.is_used_once(unscaled) || p.type(unscaled) != p.type(id))
        return std::nullopt;
    return Scores{product->inputs[0], product->inputs[1], kNoValue, scale};
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

}  // namespace

/// softmax(scale · query · keyᵀ + mask) · value, where the keys were transposed for it.
Result<bool> recognise_attention(Patterns& p, NodeId at) {
    const Node& node = p.graph().node(at);
    if (node.op->name != "matmul") return false;
    const Node* softmax = p.producer(node.inputs[0], "softmax");
    if (!softmax || !p.is_used_once(node.inputs[0])) return false;
    const std::int64_t rank = p.type(node.inputs[0]).rank(), axis = attr<std::int64_t>(*softmax, "axis");
    const auto scores = masked_product(p, softmax->inputs[0]);
    if (!scores || (axis < 0 ? axis + rank : axis) != rank - 1) return false;
    const ValueId query = scores->query, key = scores->key_transposed, value = node.inputs[1];
    if (!have_equal_batches(p.type(query).shape, p.type(key).shape) ||
        !have_equal_batches(p.type(query).shape, p.type(value).shape) || !p.may_transpose(key))
        return false;
    HR_ASSIGN(const bool is_replaced,
              p.replace(at, "scaled_dot_product_attention", {query, key, value, scores->mask},
                        {{"scale", scores->scale}, {"zero_if_masked", false}}));
    if (is_replaced) HR_TRY(p.transpose(key));
    return is_replaced;
}

/// Attention whose keys and values were repeated for groups of query heads reads them as they are.
Result<bool> recognise_grouped_attention(Patterns& p, NodeId at) {
    const Node& node = p.graph().node(at);
    if (node.op->name != "scaled_dot_product_attention") return false;
    const auto keys = repeated_heads(p, node.inputs[1]), values = repeated_heads(p, node.inputs[2]);
    if (!keys || !values) return false;
    const Shape &k = p.type(*keys).shape, &v = p.type(*values).shape;
    if (k[k.size() - 3] != v[v.size() - 3]) return false;
    std::vector<ValueId> operands = node.inputs;
    operands[1] = *keys, operands[2] = *values;
    return p.replace(at, node.op->name, std::move(operands), named_attrs(node));
}

}  // namespace headrace
