#include "doors/onnx/ops/elementwise.h"

#include <limits>

/// Functions of single elements: activations, roots, powers of e, trigonometry.
namespace headrace::onnx {
namespace {

Read unary(std::string_view op) {
    return [op](OpWriter& g, const Node& node) { return g.op(op, {node.x()}); };
}

/// Writes the op; values without a sign are returned as they are.
Read unless_unsigned(std::string_view op) {
    return [op](OpWriter& g, const Node& node) {
        return is_unsigned(node.x()->type) ? node.x() : g.op(op, {node.x()});
    };
}

/// Values without a sign are 0 or above.
Operand sign_of(OpWriter& g, const Node& node) {
    const Operand x = node.x();
    if (!is_unsigned(x->type)) return g.op("sign", {x});
    return g.op("min", {x, known(1, x->type)});
}

struct Parameter {
    const char* name;
    double otherwise;
};

Read with_attributes(std::string_view op, std::vector<Parameter> parameters) {
    return [op, parameters](OpWriter& g, const Node& node) {
        NamedAttrs attrs;
        for (const Parameter& p : parameters) attrs.emplace_back(p.name, node.real(p.name, p.otherwise));
        return g.op(op, {node.x()}, attrs);
    };
}

Operand selu(OpWriter& g, const Node& node) {
    const double alpha = node.real("alpha", 1.6732631921768188),
                 gamma = node.real("gamma", 1.0507010221481323);
    return g.times(g.op("elu", {node.x()}, {{"alpha", alpha}}), gamma);
}

/// max(0, x) + min(0, alpha (e^(x / alpha) - 1))
Operand celu(OpWriter& g, const Node& node) {
    const Operand x = node.x();
    const double alpha = node.real("alpha", 1);
    invalid_if(alpha == 0, "alpha is 0, by which it divides");
    if (alpha == 1) return g.op("elu", {x});
    const Operand quotient = g.op("div", {x, known(alpha, x->type)});
    Operand below = alpha > 0 ? g.op("elu", {quotient}) : g.plus(g.op("exp", {quotient}), -1.0);
    below = g.op("min", {g.times(below, alpha), known(0, x->type)});
    return g.op("add", {g.op("relu", {x}), below});
}

Operand thresholded_relu(OpWriter& g, const Node& node) {
    const Operand x = node.x();
    const Operand above = g.op("greater", {x, known(node.real("alpha", 1), x->type)});
    return g.op("where", {above, x, known(0, x->type)});
}

/// x + bias below -lambd, x - bias above lambd, else 0
Operand shrink(OpWriter& g, const Node& node) {
    const ElementType type = node.x()->type, through = node.x()->is_float() ? type : ElementType::f64;
    const Operand x = g.cast(node.x(), through), bias = known(node.real("bias", 0), through);
    const double limit = node.real("lambd", 0.5);
    const Operand low = g.op("lesser", {x, known(-limit, through)});
    const Operand high = g.op("greater", {x, known(limit, through)});
    const Operand inner = g.op("where", {high, g.op("sub", {x, bias}), known(0, through)});
    return g.cast(g.op("where", {low, g.op("add", {x, bias}), inner}), type);
}

Operand mish(OpWriter& g, const Node& node) {
    return g.op("mul", {node.x(), g.op("tanh", {g.op("softplus", {node.x()})})});
}

Operand swish(OpWriter& g, const Node& node) { return scaled_silu(g, node.x(), node.real("alpha", 1)); }

Operand gelu(OpWriter& g, const Node& node) {
    const std::string form = node.text("approximate", "none");
    invalid_if(form != "none" && form != "tanh", "approximate is '{}'; none or tanh", form);
    return g.op(form == "none" ? "gelu" : "gelu_tanh", {node.x()});
}

Operand prelu(OpWriter& g, const Node& node) { return g.op("prelu", {node.x(), node.operand(1)}); }

AttrValue attr_of(const Number& number) {
    return std::visit([](auto value) -> AttrValue { return value; }, number);
}

/// The bounds where they are single known numbers in order, or absent; none elsewhere.
std::optional<NamedAttrs> known_bounds(const Operand& low, const Operand& high) {
    NamedAttrs bounds;
    for (const auto& [name, bound] : {std::pair("min_value", low), std::pair("max_value", high)}) {
        if (!bound) continue;
        if (!bound->has_numbers()) return std::nullopt;
        if (bound->known->count() == 1) bounds.emplace_back(name, attr_of(bound->number(0)));
    }
    const bool is_crossed = bounds.size() == 2 && low->real(0) > high->real(0);
    return is_crossed ? std::nullopt : std::optional(bounds);
}

/// The bounds are attributes before operator set 11, and inputs after it.
Operand clip(OpWriter& g, const Node& node) {
    Operand x = node.x();
    if (node.opset < 11) {
        NamedAttrs bounds;
        if (node.has("min")) bounds.emplace_back("min_value", node.real("min", 0));
        if (node.has("max")) bounds.emplace_back("max_value", node.real("max", 0));
        return bounds.empty() ? x : g.op("clamp", {x}, bounds);
    }
    const Operand low = node.optional(1), high = node.optional(2);
    if (const auto bounds = known_bounds(low, high)) return bounds->empty() ? x : g.op("clamp", {x}, *bounds);
    if (low) x = g.op("max", {x, low});
    return high ? g.op("min", {x, high}) : x;
}

Value identity(OpWriter& g, const Node& node) {
    const Value x = node.value(0);
    return is_tensor(x) ? g.op("identity", {node.x()}) : x;
}

}  // namespace

Operand scaled_silu(OpWriter& g, const Operand& x, double alpha) {
    if (alpha == 1) return g.op("silu", {x});
    return g.op("glu", {g.times(x, alpha), x}, {{"activation", "sigmoid"}});
}

std::span<const Operator> elementwise_operators() {
    static const Operator kOperators[] = {
        {"Abs", 1, unless_unsigned("abs"), "1 -> 1, consumed_inputs ints; 6: 1 -> 1"},
        {"Acos", 7, unary("acos"), "1 -> 1"},
        {"Acosh", 9, unary("acosh"), "1 -> 1"},
        {"Asin", 7, unary("asin"), "1 -> 1"},
        {"Asinh", 9, unary("asinh"), "1 -> 1"},
        {"Atan", 7, unary("atan"), "1 -> 1"},
        {"Atanh", 9, unary("atanh"), "1 -> 1"},
        {"Ceil", 1, unary("ceil"), "1 -> 1, consumed_inputs ints; 6: 1 -> 1"},
        {"Celu", 12, celu, "1 -> 1, alpha float"},
        {"Clip", 1, clip,
         "1 -> 1, consumed_inputs ints, max float, min float; 6: 1 -> 1, max float, min float; 11: 1..3 -> "
         "1"},
        {"Cos", 7, unary("cos"), "1 -> 1"},
        {"Cosh", 9, unary("cosh"), "1 -> 1"},
        {"Elu", 1, with_attributes("elu", {{"alpha", 1}}),
         "1 -> 1, alpha float, consumed_inputs ints; 6: 1 -> 1, alpha float"},
        {"Erf", 9, unary("erf"), "1 -> 1"},
        {"Exp", 1, unary("exp"), "1 -> 1, consumed_inputs ints; 6: 1 -> 1"},
        {"Floor", 1, unary("floor"), "1 -> 1, consumed_inputs ints; 6: 1 -> 1"},
        {"Gelu", 20, gelu, "1 -> 1, approximate string"},
        {"HardSigmoid", 1, with_attributes("hard_sigmoid", {{"alpha", 0.2}, {"beta", 0.5}}),
         "1 -> 1, alpha float, beta float, consumed_inputs ints; 6: 1 -> 1, alpha float, beta float"},
        {"HardSwish", 14, unary("hard_swish"), "1 -> 1"},
        {"Identity", 1, identity, "1 -> 1"},
        {"LeakyRelu", 1, with_attributes("leaky_relu", {{"alpha", 0.01}}),
         "1 -> 1, alpha float, consumed_inputs ints; 6: 1 -> 1, alpha float"},
        {"Log", 1, unary("log"), "1 -> 1, consumed_inputs ints; 6: 1 -> 1"},
        {"Mish", 18, mish, "1 -> 1"},
        {"Neg", 1, unary("neg"), "1 -> 1, consumed_inputs ints; 6: 1 -> 1"},
        {"PRelu", 1, prelu, "2 -> 1, consumed_inputs ints; 6: 2 -> 1"},
        {"Reciprocal", 1, unary("reciprocal"), "1 -> 1, consumed_inputs ints; 6: 1 -> 1"},
        {"Relu", 1, unless_unsigned("relu"), "1 -> 1, consumed_inputs ints; 6: 1 -> 1"},
        {"Round", 11, unary("round_even"), "1 -> 1"},
        {"Selu", 1, selu,
         "1 -> 1, alpha float, consumed_inputs ints, gamma float; 6: 1 -> 1, alpha float, gamma float"},
        {"Shrink", 9, shrink, "1 -> 1, bias float, lambd float"},
        {"Sigmoid", 1, unary("sigmoid"), "1 -> 1, consumed_inputs ints; 6: 1 -> 1"},
        {"Sign", 9, sign_of, "1 -> 1"},
        {"Sin", 7, unary("sin"), "1 -> 1"},
        {"Sinh", 9, unary("sinh"), "1 -> 1"},
        {"Softplus", 1, unary("softplus"), "1 -> 1"},
        {"Softsign", 1, unary("softsign"), "1 -> 1"},
        {"Sqrt", 1, unary("sqrt"), "1 -> 1, consumed_inputs ints; 6: 1 -> 1"},
        {"Swish", 24, swish, "1 -> 1, alpha float"},
        {"Tan", 7, unary("tan"), "1 -> 1"},
        {"Tanh", 1, unary("tanh"), "1 -> 1, consumed_inputs ints; 6: 1 -> 1"},
        {"ThresholdedRelu", 1, thresholded_relu, "1 -> 1, alpha float"},
    };
    return kOperators;
}

}  // namespace headrace::onnx
