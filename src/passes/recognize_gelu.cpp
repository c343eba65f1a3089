#include <cmath>
#include <numbers>
#include <optional>
#include <vector>

#include "passes/pattern.h"

namespace headrace {
namespace {

/// A product of several factors: the numbers among them multiplied, the others listed.
struct Product {
    double number = 1;
    std::vector<ValueId> factors;
};

/// Takes apart what only this product reads, but not `whole`.
void collect(const Patterns& p, ValueId id, ValueId whole, int depth, Product& to) {
    const bool may_open = id != whole && (depth == 0 || (depth < 4 && p.is_used_once(id)));
    if (const auto number = p.scalar(id)) {
        to.number *= *number;
    } else if (const Node* mul = may_open ? p.producer(id, "mul") : nullptr) {
        for (const ValueId factor : mul->inputs) collect(p, factor, whole, depth + 1, to);
    } else if (const Node* div = may_open ? p.producer(id, "div") : nullptr;
               div && p.scalar(div->inputs[1]).value_or(0) != 0) {
        to.number /= *p.scalar(div->inputs[1]);
        collect(p, div->inputs[0], whole, depth + 1, to);
    } else {
        to.factors.push_back(id);
    }
}

Product product(const Patterns& p, ValueId id, ValueId whole = kNoValue) {
    Product found;
    collect(p, id, whole, 0, found);
    return found;
}

/// Within the rounding of a constant in f32.
bool is_near(double a, double b) { return std::abs(a - b) <= 1e-6 * std::abs(b); }

/// x when `id` is number · xⁿ.
std::optional<double> times_power(const Patterns& p, ValueId id, ValueId x, int power) {
    const Product found = product(p, id, x);
    int powers = 0;
    for (const ValueId factor : found.factors) {
        const Node* pow = p.producer(factor, "pow");
        const auto exponent = pow && pow->inputs[0] == x ? p.scalar(pow->inputs[1]) : std::nullopt;
        if (factor != x && !(exponent && (*exponent == 2 || *exponent == 3))) return std::nullopt;
        powers += factor == x ? 1 : static_cast<int>(*exponent);
    }
    return powers == power ? std::optional(found.number) : std::nullopt;
}

/// Whether `id` is erf(x / √2).
bool is_erf_of(const Patterns& p, ValueId id, ValueId x) {
    const Node* erf = p.producer(id, "erf");
    const auto factor = erf ? times_power(p, erf->inputs[0], x, 1) : std::nullopt;
    return factor && is_near(*factor, std::sqrt(0.5));
}

/// Whether `id` is tanh(√(2/π) (x + 0.044715 x³)).
bool is_tanh_of(const Patterns& p, ValueId id, ValueId x) {
    const Node* tanh = p.producer(id, "tanh");
    if (!tanh) return false;
    const Product scaled = product(p, tanh->inputs[0], x);
    const Node* add = scaled.factors.size() == 1 ? p.producer(scaled.factors[0], "add") : nullptr;
    if (!add) return false;
    for (const auto& [first, second] : Patterns::both_ways(*add)) {
        const auto linear = times_power(p, first, x, 1), cubic = times_power(p, second, x, 3);
        if (linear && cubic && is_near(scaled.number * *linear, std::sqrt(2 / std::numbers::pi)) &&
            is_near(scaled.number * *cubic, std::sqrt(2 / std::numbers::pi) * 0.044715))
            return true;
    }
    return false;
}

/// The form of gelu that x · ½ · (1 + curve) is, if any.
std::optional<OpName> form_of(const Patterns& p, ValueId gate, ValueId x) {
    const Node* add = p.producer(gate, "add");
    if (!add) return std::nullopt;
    for (const auto& [curve, one] : Patterns::both_ways(*add)) {
        if (p.scalar(one) != 1.0) continue;
        if (is_erf_of(p, curve, x)) return OpName("gelu");
        if (is_tanh_of(p, curve, x)) return OpName("gelu_tanh");
    }
    return std::nullopt;
}

/// x · ½ · (1 + erf(x / √2)), or with tanh, whatever comes first.
Result<bool> recognize_gelu(Patterns& p, NodeId at) {
    const Node& node = p.graph().node(at);
    if (!is(node, "mul") && !is(node, "div")) return false;
    const Product found = product(p, node.outputs[0]);
    if (found.factors.size() != 2 || !is_near(found.number, 0.5)) return false;
    for (const std::size_t i : {0u, 1u}) {
        const ValueId gate = found.factors[i], x = found.factors[1 - i];
        if (p.type(x) != p.type(node.outputs[0])) continue;
        if (const auto form = form_of(p, gate, x)) return p.replace(at, *form, {x}, {});
    }
    return false;
}

}  // namespace

Compositions recognize_gelu_compositions() { return {{.name = "gelus", .recognize = &recognize_gelu}}; }

}  // namespace headrace
