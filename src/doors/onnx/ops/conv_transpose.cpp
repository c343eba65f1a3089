#include <algorithm>
#include <functional>

#include "doors/onnx/ops/convolution.h"
#include "doors/onnx/ops/onnx_node.h"
#include "doors/onnx/ops/padding.h"

/// Transposed convolutions of one, two and three dimensions.
namespace headrace::onnx {
namespace {

/// The operands and attributes of a transposed convolution.
struct Transposed {
    Operand x, weight, bias;
    Window window;
    std::vector<std::int64_t> added;  ///< rows and columns behind the result
    std::int64_t groups;
};

/// Padding by which the result has the wanted extents, or at most the input's times the strides.
///
/// Half of it lies on each side; what cannot be halved lies before, with SAME_UPPER behind. Where the whole
/// result is smaller than wanted, the rest is added behind.
void pad_to_size(Transposed& of, const Shape& sizes, const std::optional<std::vector<std::int64_t>>& wanted,
                 bool is_upper) {
    Window& window = of.window;
    const Shape reach = window.reach();
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        const Dim stride = window.strides[i];
        const Dim whole = stride * (sizes[i] - 1) + of.added[i] + reach[i];
        const Dim surplus = whole - (wanted ? Dim(wanted->at(i)) : sizes[i] * stride);
        const Dim total = largest({surplus, 0}), half = divided_down(total, 2);
        window.before[i] = is_upper ? half : total - half;
        window.after[i] = (wanted ? surplus : total) - window.before[i];
    }
}

Operand transposed_image(OpWriter& g, const Transposed& of) {
    const Window& window = of.window;
    const auto is_plain = [](const Dim& d) { return !d.is_symbolic() && d.size() >= 0; };
    NamedAttrs options{{"strides", window.strides}, {"dilations", window.dilations}, {"groups", of.groups}};
    if (std::ranges::all_of(window.before, is_plain) && std::ranges::all_of(window.after, is_plain) &&
        std::ranges::equal(of.added, window.strides, std::less<>())) {
        options.emplace_back("padding", numbers_of(window.padding()));
        options.emplace_back("output_padding", of.added);
        return g.op("conv_transpose2d", {of.x, of.weight, of.bias}, options);
    }
    // The catalog's cannot: the whole result, then its edges by themselves, then the bias also there.
    Operand y = g.op("conv_transpose2d", {of.x, of.weight}, options);
    Shape begin{0, 0}, end{0, 0};
    for (std::size_t i = 0; i < window.dims(); ++i) {
        begin.push_back(Dim(0) - window.before[i]);
        end.push_back(Dim(of.added[i]) - window.after[i]);
    }
    y = with_margin(g, y, begin, end);
    if (!of.bias) return y;
    return g.op("add", {y, g.reshape(of.bias, {g.size(of.bias), 1, 1})});
}

/// Zeros between the elements along an axis.
Operand set_apart(OpWriter& g, const Operand& x, std::size_t axis, std::int64_t stride) {
    if (stride == 1) return x;
    Shape shape = g.shape(x), tall = shape, end(shape.size() + 1, 0);
    tall.insert(tall.begin() + static_cast<std::ptrdiff_t>(axis) + 1, 1);
    end[axis + 1] = stride - 1;
    const Operand wide = g.op("pad", {g.reshape(x, tall)},
                              {{"mode", "constant"},
                               {"value", 0.0},
                               {"beginning_padding", Shape(end.size(), 0)},
                               {"ending_padding", end}});
    const Dim extent = shape[axis] * Dim(stride);
    shape[axis] = extent;
    return g.cut(g.reshape(wide, shape), static_cast<int>(axis), 0, extent - Dim(stride - 1));
}

/// A convolution of the volume set apart by zeros, with the filter backwards.
Operand transposed_volume(OpWriter& g, const Transposed& of) {
    Operand x = of.x;
    for (std::size_t i = 0; i < of.window.dims(); ++i) x = set_apart(g, x, 2 + i, of.window.strides[i]);
    const Shape s = g.shape(of.weight);
    const Dim each = divided_down(s[0], of.groups);
    Operand weight = g.reshape(of.weight, {of.groups, each, s[1], s[2], s[3], s[4]});
    weight = g.op("reverse", {g.transpose(weight, {0, 2, 1, 3, 4, 5})},
                  {{"axes", std::vector<std::int64_t>{3, 4, 5}}});
    weight = g.reshape(weight, {Dim(of.groups) * s[1], each, s[2], s[3], s[4]});
    Window dense = of.window;
    dense.strides.assign(dense.dims(), 1);
    const Shape reach = of.window.reach();
    for (std::size_t i = 0; i < reach.size(); ++i) {
        dense.before[i] = reach[i] - 1 - of.window.before[i];
        dense.after[i] = reach[i] - 1 - of.window.after[i] + of.added[i];
    }
    return convolve(g, x, weight, of.bias, dense, of.groups);
}

Operand transposed(OpWriter& g, Transposed of) {
    if (of.window.dims() == 3) return transposed_volume(g, of);
    if (of.window.dims() == 2) return transposed_image(g, of);
    of.x = with_height(g, of.x);
    of.weight = with_height(g, of.weight);
    of.window = of.window.with_height();
    of.added.insert(of.added.begin(), 0);
    return without_height(g, transposed_image(g, of));
}

/// The last extents of output_shape.
std::optional<std::vector<std::int64_t>> wanted_extents(const Node& node, std::size_t dims) {
    auto wanted = node.integer_list("output_shape");
    if (!wanted || wanted->empty()) return std::nullopt;
    invalid_if(wanted->size() < dims, "output_shape has {} extents for {} axes", wanted->size(), dims);
    wanted->erase(wanted->begin(), wanted->end() - static_cast<std::ptrdiff_t>(dims));
    return wanted;
}

Operand conv_transpose(OpWriter& g, const Node& node) {
    const Operand x = node.x(), weight = node.operand(1);
    const Shape kernel = kernel_of(g, node, weight, g.rank(x)), shape = g.shape(x);
    const Shape sizes(shape.begin() + 2, shape.end());
    auto added = node.integer_list("output_padding").value_or(std::vector<std::int64_t>());
    if (added.empty()) added.assign(kernel.size(), 0);
    invalid_if(added.size() != kernel.size(), "output_padding has {} numbers for {} axes", added.size(),
               kernel.size());
    const std::string automatic = node.text("auto_pad", "NOTSET");
    Node plain = node;
    if (automatic.starts_with("SAME")) {  // another thing than for convolutions
        plain.remove("auto_pad");
        plain.remove("pads");
    }
    Transposed of{
        x, weight, node.optional(2), window_of(plain, sizes, kernel), added, node.integer("group", 1)};
    const auto wanted = wanted_extents(node, kernel.size());
    if (wanted || automatic.starts_with("SAME")) pad_to_size(of, sizes, wanted, automatic == "SAME_UPPER");
    return transposed(g, std::move(of));
}

/// ONNX Runtime's, of pads that are an input.
Operand conv_transpose_with_pads(OpWriter& g, const Node& node) {
    Node plain = onnx_node(node, "ConvTranspose", 11, {node.x(), node.operand(1), node.optional(3)});
    if (node.optional(2)) plain.set("pads", node.integers(2, "the pads"));
    return conv_transpose(g, plain);
}

}  // namespace

std::span<const Operator> conv_transpose_operators() {
    static const Operator kOperators[] = {
        {"ConvTranspose", 1, conv_transpose,
         "2..3 -> 1, auto_pad string, dilations ints, group int, kernel_shape ints, output_padding ints, "
         "output_shape ints, pads ints, strides ints"},
        {"ConvTransposeWithDynamicPads", 1, conv_transpose_with_pads,
         "2..4 -> 1, auto_pad string, dilations ints, group int, kernel_shape ints, output_padding ints, "
         "strides ints",
         kMicrosoft}};
    return kOperators;
}

}  // namespace headrace::onnx
