#include "passes/pattern.h"

namespace headrace {
namespace {

struct Root {
    double epsilon;
    std::int64_t dimensions;
};

bool is_square(const Patterns& p, ValueId id, ValueId x) {
    if (const Node* mul = p.producer(id, "mul")) return mul->inputs[0] == x && mul->inputs[1] == x;
    const Node* pow = p.producer(id, "pow");
    return pow && pow->inputs[0] == x && p.scalar(pow->inputs[1]) == 2.0;
}

/// How many of the last dimensions a mean runs over, which keeps them.
std::optional<std::int64_t> last_dimensions(const Node& mean, int rank) {
    const AttrValue given = attr_value(mean, "axes");
    const auto* axes = std::get_if<std::vector<std::int64_t>>(&given);
    if (!axes || axes->empty() || !attr<bool>(mean, "keep_dimensions")) return std::nullopt;
    std::vector<bool> is_reduced(static_cast<std::size_t>(rank));
    for (std::int64_t axis : *axes)
        is_reduced[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)] = true;
    const auto count = static_cast<std::int64_t>(axes->size());
    for (int i = 0; i < rank; ++i)
        if (is_reduced[static_cast<std::size_t>(i)] != (i >= rank - count)) return std::nullopt;
    return count;
}

/// What `id` is when it is sqrt(mean(x²) + epsilon).
std::optional<Root> root_of_mean_square(const Patterns& p, ValueId id, ValueId x) {
    const Node* sqrt = p.producer(id, "sqrt");
    const Node* add = sqrt ? p.producer(sqrt->inputs[0], "add") : nullptr;
    if (!add) return std::nullopt;
    for (const auto& [sum, constant] : Patterns::both_ways(*add)) {
        const Node* mean = p.producer(sum, "reduce_mean");
        const auto epsilon = p.scalar(constant);
        if (!mean || !epsilon || *epsilon < 0 || !is_square(p, mean->inputs[0], x)) continue;
        if (const auto dimensions = last_dimensions(*mean, p.type(x).rank()))
            return Root{*epsilon, *dimensions};
    }
    return std::nullopt;
}

/// x · 1/sqrt(mean(x²) + epsilon) or x / sqrt(…), then perhaps times a list of factors.
Result<bool> recognize_rms_norm(Patterns& p, NodeId at) {
    const Node& node = p.graph().node(at);
    const ValueId y = node.outputs.empty() ? kNoValue : node.outputs[0];
    const auto norm_of = [&](ValueId x, ValueId root) -> Result<bool> {
        if (p.type(x) != p.type(y)) return false;
        const auto found = root_of_mean_square(p, root, x);
        if (!found) return false;
        return p.replace(at, "rms_norm", {x},
                         {{"dimensions", found->dimensions}, {"epsilon", found->epsilon}});
    };
    if (is(node, "div")) return norm_of(node.inputs[0], node.inputs[1]);
    if (!is(node, "mul")) return false;
    for (const auto& [x, factor] : Patterns::both_ways(node)) {
        if (const Node* inverse = p.producer(factor, "reciprocal")) {
            HR_ASSIGN(const bool is_norm, norm_of(x, inverse->inputs[0]));
            if (is_norm) return true;
        }
        const Node* norm = p.producer(x, "rms_norm");
        if (!norm || norm->inputs.size() > 1 || !p.is_used_once(x) || p.type(x) != p.type(y)) continue;
        const auto dimensions = attr<std::int64_t>(*norm, "dimensions");
        const Shape& shape = p.type(y).shape;
        if (p.type(factor).dtype != p.type(y).dtype ||
            p.type(factor).shape != Shape(shape.end() - dimensions, shape.end()))
            continue;
        return p.replace(at, "rms_norm", {norm->inputs[0], factor}, named_attrs(*norm));
    }
    return false;
}

}  // namespace

Compositions recognize_rms_norm_compositions() {
    return {{.name = "rms_norms", .recognize = &recognize_rms_norm}};
}

}  // namespace headrace
