#include <limits>

#include "doors/onnx/reading/operators.h"

/// Comparisons, truth values and choices.
namespace headrace::onnx {
namespace {

Read compare(std::string_view op) {
    return [op](OpWriter& g, const Node& node) { return g.op(op, {node.x(), node.operand(1)}); };
}

Operand negation(OpWriter& g, const Node& node) { return g.op("logical_not", {node.x()}); }
Operand is_nan(OpWriter& g, const Node& node) { return g.op("is_nan", {node.x()}); }

Operand is_infinite(OpWriter& g, const Node& node) {
    const bool above = node.flag("detect_positive", true), below = node.flag("detect_negative", true);
    if (above && below) return g.op("is_infinite", {node.x()});
    const double infinity = std::numeric_limits<double>::infinity();
    const Operand found = g.op("equal", {node.x(), known(above ? infinity : -infinity, node.x()->type)});
    if (above || below) return found;
    return g.op("logical_and", {found, known(0, ElementType::boolean)});
}

Operand where(OpWriter& g, const Node& node) {
    invalid_if(node.x()->type != ElementType::boolean, "the condition (input 0) is {}, not bool",
               name_of(node.x()->type));
    return g.op("where", {node.x(), node.operand(1), node.operand(2)});
}

}  // namespace

std::span<const Operator> logic_operators() {
    static const Operator kOperators[] = {
        {"And", 1, compare("logical_and")},
        {"Equal", 1, compare("equal")},
        {"Greater", 1, compare("greater")},
        {"GreaterOrEqual", 12, compare("greater_or_equal")},
        {"IsInf", 10, is_infinite},
        {"IsNaN", 9, is_nan},
        {"Less", 1, compare("lesser")},
        {"LessOrEqual", 12, compare("lesser_or_equal")},
        {"Not", 1, negation},
        {"Or", 1, compare("logical_or")},
        {"Where", 9, where},
        {"Xor", 1, compare("logical_xor")},
    };
    return kOperators;
}

}  // namespace headrace::onnx
