#include "doors/onnx/ops/onnx_node.h"

/// What ONNX has had as experiments before operator set 10, and ONNX Runtime has kept for the files of then.
namespace headrace::onnx {
namespace {

constexpr std::int64_t kLastSet = 9;

Operand affine(OpWriter& g, const Node& node) {
    return g.plus(g.times(node.x(), node.real("alpha", 1)), node.real("beta", 0));
}

Operand times_scale(OpWriter& g, const Node& node) { return g.times(node.x(), node.real("scale", 1)); }

/// alpha f(beta x)
Operand scaled_twice(OpWriter& g, const Node& node, std::string_view op) {
    return g.times(g.op(op, {g.times(node.x(), node.real("beta", 1))}), node.real("alpha", 1));
}

Operand scaled_tanh(OpWriter& g, const Node& node) { return scaled_twice(g, node, "tanh"); }

Operand parametric_softplus(OpWriter& g, const Node& node) { return scaled_twice(g, node, "softplus"); }

/// An image times a number, plus one for each channel.
Operand scaled_image(OpWriter& g, const Node& node) {
    const Operand x = node.x();
    const auto bias = node.real_list("bias").value_or(std::vector<double>());
    invalid_if(g.rank(x) != 4, "the image has {} dimensions, not 4", g.rank(x));
    invalid_if(bias.empty(), "bias is missing");
    return g.op("add", {times_scale(g, node), g.add_axes(known(bias, x->type), 2)});
}

/// border: left, top, right, bottom; with a scale, which is height and width, only the first two.
Operand cropped_image(OpWriter& g, const Node& node) {
    const Operand x = node.x();
    const auto border = node.integer_list("border").value_or(std::vector<std::int64_t>());
    const auto size = node.integer_list("scale").value_or(std::vector<std::int64_t>());
    invalid_if(g.rank(x) != 4, "the image has {} dimensions, not 4", g.rank(x));
    invalid_if(border.size() != 4 || (!size.empty() && size.size() != 2),
               "border has {} numbers, not 4, or scale {}, not 2", border.size(), size.size());
    Operand y = x;
    for (const int axis : {2, 3}) {
        const std::int64_t before = border[axis == 2 ? 1 : 0], after = border[axis == 2 ? 3 : 2];
        invalid_if(before < 0 || after < 0, "border has negative numbers");
        const Dim kept = size.empty() ? g.shape(x)[static_cast<std::size_t>(axis)] - Dim(before + after)
                                      : Dim(size[static_cast<std::size_t>(axis - 2)]);
        y = g.cut(y, axis, before, kept);
    }
    return y;
}

Operand dynamic_slice(OpWriter& g, const Node& node) {
    return read_onnx(g, onnx_node(node, "Slice", 10, node.inputs)).at(0);
}

}  // namespace

std::span<const Operator> experimental_operators() {
    static const Operator kOperators[] = {
        {"Affine", 1, affine, "1 -> 1, alpha float, beta float", "", kLastSet},
        {"Crop", 1, cropped_image, "1 -> 1, border ints, scale ints", "", kLastSet},
        {"DynamicSlice", 1, dynamic_slice, "3..4 -> 1", "", kLastSet},
        {"ImageScaler", 1, scaled_image, "1 -> 1, bias floats, scale float", "", kLastSet},
        {"ParametricSoftplus", 1, parametric_softplus, "1 -> 1, alpha float, beta float", "", kLastSet},
        {"Scale", 1, times_scale, "1 -> 1, scale float", "", kLastSet},
        {"ScaledTanh", 1, scaled_tanh, "1 -> 1, alpha float, beta float", "", kLastSet},
    };
    return kOperators;
}

}  // namespace headrace::onnx
