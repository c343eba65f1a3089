#include "doors/onnx/ops/pooling.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "doors/onnx/reading/numbers.h"

/// Pools over windows of one, two and three dimensions.
namespace headrace::onnx {
namespace {

Window pool_window(OpWriter& g, const Node& node, const Operand& x) {
    const Shape shape = g.shape(x);
    refuse_if(shape.size() < 3 || shape.size() > 5,
              "the pool is over {} dimensions of an input of {}; 1 to 3 are read",
              static_cast<std::int64_t>(shape.size()) - 2, shape.size());
    const auto kernel = node.integer_list("kernel_shape");
    invalid_if(!kernel || kernel->empty(), "kernel_shape is missing");
    return window_of(node, Shape(shape.begin() + 2, shape.end()), Shape(kernel->begin(), kernel->end()));
}

bool rounds_up(const Node& node) {
    return node.is_one("ceil_mode", false) && !node.text("auto_pad", "").starts_with("SAME");
}

/// How many windows; one that would start behind the image is none.
Dim count_of_windows(const Dim& size, const Dim& before, const Dim& after, const Dim& reach,
                     std::int64_t stride, bool up) {
    const Dim span = size + before + after - reach;
    if (!up) return divided_down(span, stride) + 1;
    const Dim whole = divided_up(span, stride) + 1, within = divided_up(size + before, stride);
    return is_at_least(reach, after + stride) == Answer::yes ? whole : smallest({whole, within});
}

Shape window_counts(OpWriter& g, const Operand& x, const Window& window, bool up) {
    const Shape shape = g.shape(x), reach = window.reach();
    const Shape sizes(shape.end() - static_cast<std::ptrdiff_t>(window.dims()), shape.end());
    Shape counts;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        counts.push_back(
            count_of_windows(sizes[i], window.before[i], window.after[i], reach[i], window.strides[i], up));
        invalid_if(!counts[i].is_symbolic() && counts[i].size() < 1,
                   "the window reaches over {} elements, more than the padded image of {}", str(reach),
                   str(sizes));
    }
    return counts;
}

/// The value of padding where the largest element is wanted.
AttrValue least_of(const Operand& x) {
    if (x->is_float()) return -std::numeric_limits<double>::infinity();
    if (x->type == ElementType::i8) return std::int64_t{INT8_MIN};
    return x->type == ElementType::u8 ? std::int64_t{0} : std::int64_t{INT32_MIN};
}

Operand least_operand(const Operand& x) {
    const AttrValue least = least_of(x);
    if (const auto* whole = std::get_if<std::int64_t>(&least)) return known(*whole, x->type);
    return known(std::get<double>(least), x->type);
}

/// Pools each plane, then over the planes, which gives the same maxima and means.
Operand pooled_volumes(OpWriter& g, std::string_view op, const Operand& x, const Window& window, bool up) {
    const Shape s = g.shape(x);
    Operand y = pooled(g, op, g.reshape(x, {s[0], s[1] * s[2], s[3], s[4]}), window.part(1, 3), up);
    const Shape plane = g.shape(y);
    y = g.reshape(y, {s[0], s[1], s[2], plane[2] * plane[3]});
    Window across = window.part(0, 1);
    across.kernel.emplace_back(1);
    across.strides.push_back(1);
    across.dilations.push_back(1);
    across.before.emplace_back(0);
    across.after.emplace_back(0);
    y = pooled(g, op, y, across, up);
    return g.reshape(y, {s[0], s[1], g.shape(y)[2], plane[2], plane[3]});
}

/// Along one axis of the image, the windows' elements side by side, each within the image or not.
struct Taps {
    Operand places;  ///< of all windows' elements, one behind the other
    Operand inside;  ///< [windows, elements of one, 1, ...]
};

Taps taps_along(OpWriter& g, const Window& window, std::size_t i, const Dim& size, const Dim& count,
                std::int64_t after) {
    const std::int64_t taps = window.kernel[i].size();
    OpWriter::check_extent(taps);
    std::vector<std::int64_t> distances = counted_list(taps);
    for (std::int64_t& d : distances) d *= window.dilations[i];
    Operand starts = g.times(g.positions(count), Item(window.strides[i]));
    starts = g.plus(starts, Item(Dim(0) - window.before[i]));
    const Operand at = g.op("add", {g.reshape(starts, {count, 1}), known(distances)});
    const Operand kept = g.within(at, 0, Item(size - 1));
    return {g.reshape(kept, {count * Dim(taps)}), g.add_axes(g.op("equal", {at, kept}), after)};
}

/// Row-major places of an image as column-major ones.
Operand column_major(OpWriter& g, const Operand& places, const Shape& sizes) {
    Operand total, left = places;
    for (std::size_t i = sizes.size(); i-- > 0;) {
        const Operand extent = g.at_run_time(Item(sizes[i]), ElementType::i64);
        const Dim step = product_of(std::span(sizes).first(i));
        const Operand part = g.times(g.op("remainder", {left, extent}), Item(step));
        total = total ? g.op("add", {total, part}) : part;
        left = g.op("div", {left, extent});
    }
    return total;
}

/// The largest, and where it was in the whole input: an axis after the other, the last one first.
///
/// Along each axis the window's elements lie side by side; where the largest was is its place along that
/// axis, and of the axes before it what was chosen there. Ties take the first in the row-major order, as each
/// step keeps the order of the axes that are left.
Results with_places(OpWriter& g, const Node& node, const Window& window, bool up) {
    Operand x = node.x();
    const Shape whole = g.shape(x), sizes(whole.begin() + 2, whole.end());
    const Shape counts = window_counts(g, x, window, up);
    Shape single = whole;
    single[0] = single[1] = 1;
    Operand places = g.expand(g.reshape(g.positions(product_of(sizes)), single), whole);
    const Operand least = least_operand(x);
    for (std::size_t i = window.dims(); i-- > 0;) {
        const auto axis = static_cast<std::int64_t>(2 + i);
        const Shape shape = g.shape(x);
        const auto behind = static_cast<std::int64_t>(shape.size()) - 1 - axis;
        const Taps taps = taps_along(g, window, i, sizes[i], counts[i], behind);
        Shape split = shape, merged = shape;
        split[2 + i] = counts[i];
        split.insert(split.begin() + axis + 1, window.kernel[i]);
        merged[2 + i] = counts[i];
        const auto beside = [&](const Operand& of) {
            return g.reshape(g.op("gather", {of, taps.places}, {{"axis", axis}}), split);
        };
        const Operand taken = g.op("where", {taps.inside, beside(x), least});
        const NamedAttrs options{
            {"axis", axis + 1}, {"keep_dimensions", true}, {"output_data_type", DType::i64}};
        const Operand tap = g.op("arg_max", {taken}, options);
        places = g.reshape(g.op("gather_elements", {beside(places), tap}, {{"axis", axis + 1}}), merged);
        x = g.op("reduce_max", {taken}, {{"axes", std::vector<std::int64_t>{axis + 1}}});
    }
    if (node.flag("storage_order", false)) places = column_major(g, places, sizes);
    const Operand planes = g.times(g.positions(whole[0] * whole[1]), Item(product_of(sizes)));
    const Operand column =
        g.add_axes(g.reshape(planes, {whole[0], whole[1]}), static_cast<std::int64_t>(sizes.size()));
    return {x, g.op("add", {places, column})};
}

Results max_pool(OpWriter& g, const Node& node) {
    const Window window = pool_window(g, node, node.x());
    if (node.wants(1)) return with_places(g, node, window, rounds_up(node));
    return {pooled(g, "max_pool2d", node.x(), window, rounds_up(node))};
}

/// The image padded with zeros, and the window without padding: means count those zeros.
std::pair<Operand, Window> with_zeros(OpWriter& g, const Operand& x, Window window) {
    Shape begin{0, 0}, end{0, 0};
    begin.insert(begin.end(), window.before.begin(), window.before.end());
    end.insert(end.end(), window.after.begin(), window.after.end());
    const Operand wide =
        g.op("pad", {x},
             {{"beginning_padding", begin}, {"ending_padding", end}, {"mode", "constant"}, {"value", 0.0}});
    window.before.assign(window.dims(), 0);
    window.after.assign(window.dims(), 0);
    return {wide, window};
}

Operand average_pool(OpWriter& g, const Node& node) { return averages(g, node, node.x()); }

double elements_of_window(const Window& window) {
    double count = 1;
    for (const Dim& d : window.kernel) count *= static_cast<double>(d.size());
    return count;
}

/// Means of windows that are all whole, times their size.
Operand window_sums(OpWriter& g, const Operand& x, Window window, bool up) {
    const Shape counts = window_counts(g, x, window, up), shape = g.shape(x), reach = window.reach();
    for (std::size_t i = 0; i < window.dims(); ++i)
        window.after[i] = largest(
            {(counts[i] - 1) * Dim(window.strides[i]) + reach[i] - shape[2 + i] - window.before[i], 0});
    const auto [wide, whole] = with_zeros(g, x, window);
    return g.times(pooled(g, "average_pool2d", wide, whole, false), elements_of_window(window));
}

/// The p-th root of the sum of |x|^p in each window.
Operand lp_pool(OpWriter& g, const Node& node) {
    const std::int64_t p = node.integer("p", 2);
    invalid_if(p < 1, "p is {}; at least 1", p);
    const Window window = pool_window(g, node, node.x());
    const bool up = rounds_up(node);
    if (p == 2 && window.dims() != 3) return pooled(g, "l2_pool2d", node.x(), window, up);
    const Operand x = g.op("abs", {node.x()});
    const Operand powers = p == 1 ? x : g.op("pow", {x, known(p, x->type)});
    const Operand total = window_sums(g, powers, window, up);
    return p == 1 ? total : g.op("pow", {total, known(1.0 / static_cast<double>(p), x->type)});
}

std::vector<std::int64_t> spatial_axes(OpWriter& g, const Operand& x) {
    invalid_if(g.rank(x) < 3, "the input has {} dimensions; 3 are the least", g.rank(x));
    std::vector<std::int64_t> axes = counted_list(g.rank(x));
    axes.erase(axes.begin(), axes.begin() + 2);
    return axes;
}

Operand global_pool(OpWriter& g, const Node& node) {
    const Operand x = node.x();
    const bool is_mean = node.op == "GlobalAveragePool";
    const auto axes = spatial_axes(g, x);
    const Shape shape = g.shape(x);
    if (axes.size() == 2 && !shape[2].is_symbolic() && !shape[3].is_symbolic())
        return g.op(is_mean ? "average_pool2d" : "max_pool2d", {x});
    return g.op(is_mean ? "reduce_mean" : "reduce_max", {x}, {{"axes", axes}, {"keep_dimensions", true}});
}

Operand global_lp_pool(OpWriter& g, const Node& node) {
    const Operand x = node.x();
    const std::int64_t p = node.integer("p", 2);
    invalid_if(p < 1, "p is {}; at least 1", p);
    const NamedAttrs options{{"axes", spatial_axes(g, x)}, {"keep_dimensions", true}};
    if (p <= 2) return g.op(p == 1 ? "reduce_l1" : "reduce_l2", {x}, options);
    const Operand total = g.op("reduce_sum", {g.op("pow", {g.op("abs", {x}), known(p, x->type)})}, options);
    return g.op("pow", {total, known(1.0 / static_cast<double>(p), x->type)});
}

}  // namespace

Operand pooled(OpWriter& g, std::string_view op, const Operand& x, const Window& window, bool up) {
    if (op == "average_pool2d" && (is_open(window.before) || is_open(window.after))) {
        Shape image = g.shape(x);
        image[0] = image[1] = 1;
        const auto part = [&](const Operand& v) {
            const auto [inner, rest] = unpadded(g, v, window);
            return pooled(g, op, inner, rest, up);
        };
        return g.op("div", {part(x), part(g.filled(1, x->type, image))});  // what of a window lies inside
    }
    const auto [inner, rest] = unpadded(g, x, window, op == "max_pool2d" ? least_of(x) : AttrValue(0.0));
    if (rest.dims() == 1)
        return without_height(g, pooled(g, op, with_height(g, inner), rest.with_height(), up));
    if (rest.dims() == 3) return pooled_volumes(g, op, inner, rest, up);
    NamedAttrs options{{"window_dimensions", numbers_of(rest.kernel)},
                       {"strides", rest.strides},
                       {"dilations", rest.dilations},
                       {"padding", numbers_of(rest.padding())}};
    if (up) {
        options.emplace_back("output_shape_rounding", "ceil");
        options.emplace_back("output_sizes", window_counts(g, inner, rest, up));
    }
    return g.op(op, {inner}, options);
}

Operand averages(OpWriter& g, const Node& node, const Operand& x) {
    const Window window = pool_window(g, node, x);
    const bool up = rounds_up(node);
    const auto is_none = [](const Dim& d) { return d.is(0); };
    const bool has_margin =
        !std::ranges::all_of(window.before, is_none) || !std::ranges::all_of(window.after, is_none);
    if (!node.flag("count_include_pad", false) || !has_margin)
        return pooled(g, "average_pool2d", x, window, up);
    const auto [wide, inner] = with_zeros(g, x, window);
    if (!up) return pooled(g, "average_pool2d", wide, inner, up);
    // Before the margin hides which windows start behind the image.
    const Shape counts = window_counts(g, x, window, up);
    Operand y = pooled(g, "average_pool2d", wide, inner, up);
    for (std::size_t i = 0; i < counts.size(); ++i) y = g.cut(y, static_cast<int>(2 + i), 0, counts[i]);
    return y;
}

Operand means_with_margin(OpWriter& g, const Node& node, const Operand& x) {
    const Window window = pool_window(g, node, x);
    return g.times(window_sums(g, x, window, rounds_up(node)), 1 / elements_of_window(window));
}

std::span<const Operator> pooling_operators() {
    static const Operator kOperators[] = {
        {"AveragePool", 1, average_pool,
         "1 -> 1, auto_pad string, kernel_shape ints, pads ints, strides ints; 7: 1 -> 1, auto_pad string, "
         "count_include_pad int, kernel_shape ints, pads ints, strides ints; 10: 1 -> 1, auto_pad string, "
         "ceil_mode int, count_include_pad int, kernel_shape ints, pads ints, strides ints; 19: 1 -> 1, "
         "auto_pad string, ceil_mode int, count_include_pad int, dilations ints, kernel_shape ints, pads "
         "ints, strides ints"},
        {"GlobalAveragePool", 1, global_pool, "1 -> 1"},
        {"GlobalLpPool", 1, global_lp_pool, "1 -> 1, p float; 2: 1 -> 1, p int"},
        {"GlobalMaxPool", 1, global_pool, "1 -> 1"},
        {"LpPool", 1, lp_pool,
         "1 -> 1, auto_pad string, kernel_shape ints, p float, pads ints, strides ints; 2: 1 -> 1, auto_pad "
         "string, kernel_shape ints, p int, pads ints, strides ints; 18: 1 -> 1, auto_pad string, ceil_mode "
         "int, dilations ints, kernel_shape ints, p int, pads ints, strides ints"},
        {"MaxPool", 1, max_pool,
         "1 -> 1, auto_pad string, kernel_shape ints, pads ints, strides ints; 8: 1 -> 1..2, auto_pad "
         "string, kernel_shape ints, pads ints, storage_order int, strides ints; 10: 1 -> 1..2, auto_pad "
         "string, ceil_mode int, dilations ints, kernel_shape ints, pads ints, storage_order int, strides "
         "ints"},
    };
    return kOperators;
}

}  // namespace headrace::onnx
