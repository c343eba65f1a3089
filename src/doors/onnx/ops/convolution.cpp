#include "doors/onnx/ops/convolution.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "doors/onnx/ops/padding.h"

/// Convolutions of one, two and three dimensions, all on the catalog's two-dimensional ones.
namespace headrace::onnx {
namespace {

std::vector<std::int64_t> list_or(const Node& node, std::string_view name, std::size_t count,
                                  std::int64_t value) {
    auto list = node.integer_list(name).value_or(std::vector<std::int64_t>());
    return list.empty() ? std::vector<std::int64_t>(count, value) : list;
}

/// The planes under a filter become channels of one image: [n, c, d, h, w] as [n d', c kd, h, w].
Operand over_volumes(OpWriter& g, Operand x, const Operand& weight, const Operand& bias, const Window& window,
                     std::int64_t groups) {
    const Dim before = window.before[0], after = window.after[0];
    if (!before.is(0) || !after.is(0))
        x = g.op("pad", {x},
                 {{"mode", "constant"},
                  {"value", 0.0},
                  {"beginning_padding", Shape{0, 0, before, 0, 0}},
                  {"ending_padding", Shape{0, 0, after, 0, 0}}});
    const Shape s = g.shape(x), filter = g.shape(weight);
    const std::int64_t planes = g.fixed(filter[2], "the depth of the filter");
    OpWriter::check_extent(planes);
    const std::int64_t stride = window.strides[0], dilation = window.dilations[0];
    const Dim count = divided_down(s[2] - Dim(dilation) * Dim(planes - 1) - 1, stride) + 1;
    std::vector<Operand> taps;
    for (std::int64_t k = 0; k < planes; ++k) {
        const Operand tap = g.cut(x, 2, Dim(k) * Dim(dilation), (count - 1) * Dim(stride) + 1, stride);
        taps.push_back(g.reshape(tap, {s[0], s[1], 1, count, s[3], s[4]}));
    }
    const Operand stacked = g.transpose(g.concat(taps, 2), {0, 3, 1, 2, 4, 5});
    const Operand image = g.reshape(stacked, {s[0] * count, s[1] * Dim(planes), s[3], s[4]});
    const Operand flat = g.reshape(weight, {filter[0], filter[1] * Dim(planes), filter[3], filter[4]});
    const Operand y = convolve(g, image, flat, bias, window.part(1, 3), groups);
    const Shape size = g.shape(y);
    return g.transpose(g.reshape(y, {s[0], count, size[1], size[2], size[3]}), {0, 2, 1, 3, 4});
}

Operand conv(OpWriter& g, const Node& node) {
    return convolution(g, node, node.x(), node.operand(1), node.optional(2));
}

}  // namespace

Shape Window::reach() const {
    Shape list;
    for (std::size_t i = 0; i < dims(); ++i) list.push_back((kernel[i] - 1) * Dim(dilations[i]) + 1);
    return list;
}

Shape Window::padding() const {
    Shape list;
    for (std::size_t i = 0; i < dims(); ++i) {
        list.push_back(before[i]);
        list.push_back(after[i]);
    }
    return list;
}

Window Window::part(std::size_t begin, std::size_t end) const {
    const auto cut = [&](const auto& list) {
        return std::remove_cvref_t<decltype(list)>(list.begin() + static_cast<std::ptrdiff_t>(begin),
                                                   list.begin() + static_cast<std::ptrdiff_t>(end));
    };
    return {cut(kernel), cut(strides), cut(dilations), cut(before), cut(after)};
}

Window Window::with_height() const {
    Window wide = *this;
    wide.kernel.insert(wide.kernel.begin(), 1);
    wide.strides.insert(wide.strides.begin(), 1);
    wide.dilations.insert(wide.dilations.begin(), 1);
    wide.before.insert(wide.before.begin(), 0);
    wide.after.insert(wide.after.begin(), 0);
    return wide;
}

void Window::check() const {
    const std::size_t count = kernel.size();
    invalid_if(
        strides.size() != count || dilations.size() != count || before.size() != count ||
            after.size() != count,
        "kernel, strides, dilations and pads have {}, {}, {} and {} numbers: they differ in their number of "
        "axes",
        count, strides.size(), dilations.size(), before.size() + after.size());
    const auto is_bad = [](std::int64_t n) { return n < 1; };
    invalid_if(std::ranges::any_of(strides, is_bad) || std::ranges::any_of(dilations, is_bad) ||
                   std::ranges::any_of(kernel, [](const Dim& d) { return !d.is_symbolic() && d.size() < 1; }),
               "kernel {}, strides [{}], dilations [{}] must be at least 1", str(kernel),
               fmt::join(strides, ", "), fmt::join(dilations, ", "));
}

Window window_of(const Node& node, const Shape& sizes, const Shape& kernel) {
    const std::size_t dims = sizes.size();
    std::vector<std::int64_t> pads = list_or(node, "pads", 2 * dims, 0);
    const std::string automatic = node.text("auto_pad", "NOTSET");
    const bool is_same_size = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
    invalid_if(!is_same_size && automatic != "VALID" && automatic != "NOTSET" && !automatic.empty(),
               "auto_pad is '{}'; NOTSET, VALID, SAME_UPPER, SAME_LOWER are ONNX's", automatic);
    if (automatic == "VALID") pads.assign(2 * dims, 0);
    invalid_if(pads.size() != 2 * dims, "pads has {} numbers for {} axes", pads.size(), dims);
    const auto half = pads.begin() + static_cast<std::ptrdiff_t>(dims);
    Window window{kernel, list_or(node, "strides", dims, 1), list_or(node, "dilations", dims, 1),
                  Shape(pads.begin(), half), Shape(half, pads.end())};
    window.check();
    if (!is_same_size) return window;
    const Shape reach = window.reach();
    for (std::size_t i = 0; i < dims; ++i) {
        const Dim stride = window.strides[i];
        const Dim total =
            stride.is(1) ? reach[i] - 1
                         : largest({(divided_up(sizes[i], stride) - 1) * stride + reach[i] - sizes[i], 0});
        const Dim small = divided_down(total, 2), large = total - small;
        window.before[i] = automatic == "SAME_UPPER" ? small : large;
        window.after[i] = automatic == "SAME_UPPER" ? large : small;
    }
    return window;
}

Operand with_height(OpWriter& g, const Operand& x) {
    const Shape s = g.shape(x);
    return g.reshape(x, {s.at(0), s.at(1), 1, s.at(2)});
}

Operand without_height(OpWriter& g, const Operand& y) {
    const Shape s = g.shape(y);
    return g.reshape(y, {s.at(0), s.at(1), s.at(3)});
}

std::pair<Operand, Window> unpadded(OpWriter& g, const Operand& x, const Window& window,
                                    const AttrValue& value) {
    const auto is_margin = [](const Dim& d) { return d.is_symbolic() || d.size() < 0; };
    const std::size_t kept = static_cast<std::size_t>(g.rank(x)) - window.dims();
    Shape begin(kept, 0), end(kept, 0);
    Window inside = window;
    bool is_any = false;
    for (std::size_t i = 0; i < window.dims(); ++i) {
        const bool is_apart = is_margin(window.before[i]) || is_margin(window.after[i]);
        begin.push_back(is_apart ? window.before[i] : Dim(0));
        end.push_back(is_apart ? window.after[i] : Dim(0));
        if (is_apart) inside.before[i] = inside.after[i] = 0;
        is_any |= is_apart;
    }
    if (!is_any) return {x, window};
    return {with_margin(g, x, begin, end, "constant", value), inside};
}

Operand convolve(OpWriter& g, Operand x, const Operand& weight, const Operand& bias, Window window,
                 std::int64_t groups) {
    std::tie(x, window) = unpadded(g, x, window);
    if (window.dims() == 1) {
        const Operand y =
            convolve(g, with_height(g, x), with_height(g, weight), bias, window.with_height(), groups);
        return without_height(g, y);
    }
    if (window.dims() == 3) return over_volumes(g, x, weight, bias, window, groups);
    return g.op("conv2d", {x, weight, bias},
                {{"strides", window.strides},
                 {"dilations", window.dilations},
                 {"padding", numbers_of(window.padding())},
                 {"groups", groups}});
}

Shape kernel_of(OpWriter& g, const Node& node, const Operand& weight, int rank) {
    const Shape shape = g.shape(weight);
    invalid_if(static_cast<int>(shape.size()) != rank || rank < 3,
               "the filter (input 1) has {} dimensions and the input {}; both need 3 or more", shape.size(),
               rank);
    refuse_if(rank > 5, "the convolution is over {} dimensions; 3 are the most", rank - 2);
    const Shape kernel(shape.begin() + 2, shape.end());
    const auto given = node.integer_list("kernel_shape");
    invalid_if(given && !given->empty() && !is_open(kernel) && *given != numbers_of(kernel),
               "kernel_shape is [{}] and the filter's shape {}",
               fmt::join(given.value_or(std::vector<std::int64_t>()), ", "), str(shape));
    return kernel;
}

Operand convolution(OpWriter& g, const Node& node, const Operand& x, const Operand& weight,
                    const Operand& bias) {
    const Shape kernel = kernel_of(g, node, weight, g.rank(x));
    const Shape shape = g.shape(x);
    const Window window = window_of(node, Shape(shape.begin() + 2, shape.end()), kernel);
    return convolve(g, x, weight, bias, window, node.integer("group", 1));
}

std::span<const Operator> convolution_operators() {
    static const Operator kOperators[] = {{"Conv", 1, conv,
                                           "2..3 -> 1, auto_pad string, dilations ints, group int, "
                                           "kernel_shape ints, pads ints, strides ints"}};
    return kOperators;
}

}  // namespace headrace::onnx
