#include <numbers>

#include "doors/onnx/reading/numbers.h"
#include "doors/onnx/reading/operators.h"

/// Windows of signals: a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n), in f32 as ONNX defines them.
namespace headrace::onnx {
namespace {

struct Cosines {
    double constant, first, second;
};

Operand window_by(OpWriter& g, const Node& node, const Cosines& factors) {
    const Operand given = g.reshape(g.cast(node.x(), ElementType::i64), {1});
    const Dim count = is_known(given)
                          ? extents_of(g, given).at(0)
                          : extents_of(g, checked_numbers(g, given, "the size of a window", 0)).at(0);
    invalid_if(!count.is_symbolic() && count.size() < 0, "the size (input 0) is {}; at least 0", count.str());
    const Dim period = node.flag("periodic", true) ? count : count - 1;
    const Operand places = g.cast(g.positions(count), ElementType::f32);
    const Operand turns = g.op("div", {places, g.at_run_time(Item(period), ElementType::f32)});
    const auto cosine = [&](double times) {
        return g.op("cos", {g.times(turns, 2 * std::numbers::pi * times)});
    };
    Operand y = g.plus(g.times(cosine(1), -factors.first), factors.constant);
    if (factors.second != 0) y = g.op("add", {y, g.times(cosine(2), factors.second)});
    return g.cast(y, type_named(node.integer("output_datatype", 1), "output_datatype"));
}

Read cosine_window(const Cosines& factors) {
    return [factors](OpWriter& g, const Node& node) { return window_by(g, node, factors); };
}

}  // namespace

std::span<const Operator> windows_operators() {
    static const Operator kOperators[] = {
        {"BlackmanWindow", 17, cosine_window({0.42, 0.5, 0.08})},
        {"HammingWindow", 17, cosine_window({25.0 / 46, 21.0 / 46, 0})},
        {"HannWindow", 17, cosine_window({0.5, 0.5, 0})},
    };
    return kOperators;
}

}  // namespace headrace::onnx
