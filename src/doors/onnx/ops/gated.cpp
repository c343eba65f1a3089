#include "doors/onnx/ops/convolution.h"

/// Parts of gated layers: what ONNX defines by other operators.
namespace headrace::onnx {
namespace {

/// A sigmoid(alpha A) times B
Operand swiglu(OpWriter& g, const Node& node) {
    const Operand a = node.x();
    const double alpha = node.real("alpha", 1);
    const Operand gate = g.op("glu", {g.times(a, alpha), a}, {{"activation", "sigmoid"}});
    return g.op("mul", {gate, node.operand(1)});
}

/// Of each channel by itself, over this and earlier positions; the last ones are given on.
Results causal_convolution(OpWriter& g, const Node& node) {
    const Operand x = node.x(), weight = node.operand(1);
    const Shape shape = g.shape(x), filter = g.shape(weight);
    invalid_if(shape.size() != 3 || filter.size() != 3,
               "the input and the filter have {} and {} dimensions, not 3", shape.size(), filter.size());
    const std::int64_t kept = g.fixed(filter[2], "the length of the filter") - 1;
    const std::int64_t channels = g.fixed(shape[1], "the number of channels");
    invalid_if(kept < 0, "the filter (input 1) has no elements");
    const std::string activation = node.text("activation", "none");
    invalid_if(activation != "none" && activation != "silu" && activation != "swish",
               "activation is '{}'; none, silu and swish are ONNX's", activation);
    const Operand past =
        node.optional(3) ? node.optional(3) : g.filled(0, x->type, {shape[0], shape[1], kept});
    const Operand whole = kept > 0 ? g.concat({past, x}, 2) : x;
    Window window{{filter[2]}, {1}, {1}, {0}, {0}};
    const Operand y = convolve(g, whole, weight, node.optional(2), window, channels);
    const Operand present = g.cut(whole, 2, g.shape(whole)[2] - kept, kept);
    return {activation == "none" ? y : g.op("silu", {y}), present};
}

}  // namespace

std::span<const Operator> gated_operators() {
    static const Operator kOperators[] = {
        {"CausalConvWithState", 27, causal_convolution, "2..4 -> 2, activation string"},
        {"SwiGLU", 28, swiglu, "2 -> 1, alpha float"},
    };
    return kOperators;
}

}  // namespace headrace::onnx
