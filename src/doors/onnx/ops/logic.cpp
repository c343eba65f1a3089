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
        {"And", 1, compare("logical_and"), "2 -> 1, axis int, broadcast int; 7: 2 -> 1"},
        {"Equal", 1, compare("equal"), "2 -> 1, axis int, broadcast int; 7: 2 -> 1"},
        {"Greater", 1, compare("greater"), "2 -> 1, axis int, broadcast int; 7: 2 -> 1"},
        {"GreaterOrEqual", 12, compare("greater_or_equal"), "2 -> 1"},
        {"IsInf", 10, is_infinite, "1 -> 1, detect_negative int, detect_positive int"},
        {"IsNaN", 9, is_nan, "1 -> 1"},
        {"Less", 1, compare("lesser"), "2 -> 1, axis int, broadcast int; 7: 2 -> 1"},
        {"LessOrEqual", 12, compare("lesser_or_equal"), "2 -> 1"},
        {"Not", 1, negation, "1 -> 1"},
        {"Or", 1, compare("logical_or"), "2 -> 1, axis int, broadcast int; 7: 2 -> 1"},
        {"Where", 9, where, "3 -> 1"},
        {"Xor", 1, compare("logical_xor"), "2 -> 1, axis int, broadcast int; 7: 2 -> 1"},
    };
    return kOperators;
}

}  // namespace headrace::onnx
