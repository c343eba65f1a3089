#include "passes/pattern.h"

namespace headrace {
namespace {

using Extents = std::vector<std::int64_t>;

/// The value of whose last dimension `id` is the first or second half.
std::optional<ValueId> half_of(const Patterns& p, ValueId id, bool second) {
    const Node* slice = p.producer(id, "slice");
    if (!slice) return std::nullopt;
    const ValueId source = slice->inputs[0];
    Shape expected = p.type(source).shape;
    if (expected.empty() || expected.back().is_symbolic() || expected.back().size() % 2 != 0)
        return std::nullopt;
    const std::int64_t half = expected.back().size() / 2;
    expected.back() = half;
    Shape starts(expected.size(), 0);
    starts.back() = second ? half : 0;
    const AttrValue strides = attr_value(*slice, "strides");
    const auto* steps = std::get_if<Extents>(&strides);
    if (steps && *steps != Extents(steps->size(), 1)) return std::nullopt;
    if (p.type(id).shape != expected || attr_value(*slice, "starts") != AttrValue(starts))
        return std::nullopt;
    return source;
}

/// The value x of which `id` is [-second half, first half].
std::optional<ValueId> turned(const Patterns& p, ValueId id) {
    const Node* concat = p.producer(id, "concat");
    if (!concat || concat->inputs.size() != 2) return std::nullopt;
    const std::int64_t axis = attr<std::int64_t>(*concat, "axis"), rank = p.type(id).rank();
    if ((axis < 0 ? axis + rank : axis) != rank - 1) return std::nullopt;
    const Node* negated = p.producer(concat->inputs[0], "neg");
    const auto second = negated ? half_of(p, negated->inputs[0], true) : std::nullopt;
    const auto first = half_of(p, concat->inputs[1], false);
    return first && first == second ? first : std::nullopt;
}

/// x · cos + [-second half of x, first half] · sin.
Result<bool> recognize_rotary_embedding(Patterns& p, NodeId at) {
    const Node& node = p.graph().node(at);
    if (!is(node, "add")) return false;
    for (const auto& [left, right] : Patterns::both_ways(node)) {
        const Node *plain = p.producer(left, "mul"), *rotated = p.producer(right, "mul");
        if (!plain || !rotated) continue;
        for (const auto& [halves, sin] : Patterns::both_ways(*rotated)) {
            const auto x = turned(p, halves);
            if (!x || p.type(*x) != p.type(node.outputs[0])) continue;
            for (const auto& [same, cos] : Patterns::both_ways(*plain)) {
                if (same != *x || p.type(cos) != p.type(sin) || p.type(cos).rank() == 0 ||
                    p.type(cos).shape.back() != p.type(*x).shape.back())
                    continue;
                return p.replace(at, "rotary_embedding", {*x, cos, sin}, {});
            }
        }
    }
    return false;
}

}  // namespace

Compositions recognize_rotary_embedding_compositions() {
    return {{.name = "rotary_embeddings", .recognize = &recognize_rotary_embedding}};
}

}  // namespace headrace
