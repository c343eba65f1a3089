#include <algorithm>
#include <map>
#include <set>

#include "doors/onnx/reading/numbers.h"
#include "doors/onnx/reading/operators.h"

/// Reductions over axes, softmax, and sums along an axis.
namespace headrace::onnx {
namespace {

using Axes = std::vector<std::int64_t>;

bool is_of_floats(std::string_view op) {
    return op == "reduce_l2" || op == "reduce_log_sum" || op == "reduce_log_sum_exp" || op == "reduce_mean";
}

/// Integers are rounded once, at the end.
ElementType computed_type(std::string_view op, const Operand& x) {
    return is_of_floats(op) && !x->is_float() ? ElementType::f64 : x->type;
}

/// The reduction of a single element.
Operand of_single_elements(OpWriter& g, std::string_view op, const Operand& x) {
    if (op == "reduce_l1" || op == "reduce_l2") return g.op("abs", {x});
    if (op == "reduce_sum_square") return g.op("mul", {x, x});
    if (op != "reduce_log_sum") return g.op("identity", {x});
    return g.cast(g.op("log", {g.cast(x, computed_type(op, x))}), x->type);
}

Operand reduced_over(OpWriter& g, std::string_view op, const Operand& x, const Axes& axes, bool keep) {
    if (axes.empty()) return of_single_elements(g, op, x);
    const Operand y =
        g.op(op, {g.cast(x, computed_type(op, x))}, {{"axes", axes}, {"keep_dimensions", keep}});
    return g.cast(y, x->type);
}

/// Every dimension is two, of which the second one is reduced.
Operand over_pairs(OpWriter& g, std::string_view op, Operand x, const Shape& kept, const Shape& reduced) {
    const auto rank = static_cast<std::int64_t>(kept.size());
    if (2 * rank <= kMostDimensions) {
        Shape pairs;
        Axes axes;
        for (std::size_t i = 0; i < kept.size(); ++i) {
            axes.push_back(static_cast<std::int64_t>(2 * i + 1));
            pairs.push_back(kept[i]);
            pairs.push_back(reduced[i]);
        }
        return reduced_over(g, op, g.reshape(x, pairs), axes, false);
    }
    // One axis after the other; before or after all of them comes another op.
    const bool is_sum = op == "reduce_log_sum" || op == "reduce_sum_square";
    const ElementType type = x->type;
    x = g.cast(x, computed_type(op, x));
    if (op == "reduce_sum_square") x = g.op("mul", {x, x});
    Shape sizes = g.shape(x);
    for (std::size_t axis = 0; axis < kept.size(); ++axis) {
        const std::span<const Dim> all(sizes);
        const Dim before = product_of(all.first(axis)), after = product_of(all.subspan(axis + 1));
        x = g.reshape(x, {before, kept[axis], reduced[axis], after});
        x = reduced_over(g, is_sum ? "reduce_sum" : op, x, {2}, false);
        sizes[axis] = kept[axis];
    }
    x = g.reshape(x, sizes);
    return g.cast(op == "reduce_log_sum" ? g.op("log", {x}) : x, type);
}

/// Over axes that are known only at run time. Every dimension is two, of which one has the extent 1: the one
/// that is reduced, or the one that is kept.
Operand reduced_as_told(OpWriter& g, std::string_view op, const Node& node, bool keep) {
    const Operand x = node.x(), axes = node.operand(1);
    const std::int64_t rank = g.rank(x);
    const Dim count = g.size(axes);
    const bool is_noop = node.is_one("noop_with_empty_axes", false);
    if (count.is(0))
        return is_noop ? of_single_elements(g, op, x) : reduced_over(g, op, x, counted_list(rank), keep);
    Numbers is_axis = axes_told(g, axes, rank);
    if (count.is_symbolic() && !is_noop) is_axis = Numbers(g, Shape{count}).equals(0).either(is_axis);
    const Numbers sizes(g, g.shape(x));
    const Operand pairs = g.concat({is_axis.choose(1, sizes).x(), is_axis.choose(sizes, 1).x()}, 0);
    const Shape extents = Numbers(g, pairs).extents();
    const Operand y = over_pairs(g, op, x, Shape(extents.begin(), extents.begin() + rank),
                                 Shape(extents.begin() + rank, extents.end()));
    if (keep) return y;
    const std::int64_t kept = rank - told_count(g, axes, "axes");
    if (kept == 0) return g.reshape(y, {});
    return g.reshape(y, Numbers(g, g.shape(y)).at(others(g, is_axis, rank, kept)).extents());
}

/// The axes are an attribute in older operator sets and an input in newer ones.
Operand reduced_by(OpWriter& g, const Node& node, std::string_view op) {
    const Operand x = node.x();
    const std::int64_t rank = g.rank(x);
    const bool keep = node.is_one("keepdims", true);
    if (!is_known(node.optional(1)) && !node.has("axes")) return reduced_as_told(g, op, node, keep);
    Axes axes = node.list_at("axes", 1, "the axes").value_or(Axes());
    if (axes.empty()) {
        if (node.is_one("noop_with_empty_axes", false)) return of_single_elements(g, op, x);
        axes = counted_list(rank);
    }
    axes = axes_of(axes, rank);
    std::ranges::sort(axes);
    return reduced_over(g, op, x, axes, keep);
}

Read reduction(std::string_view op) {
    return [op](OpWriter& g, const Node& node) { return reduced_by(g, node, op); };
}

/// The first of equal elements, or the last one.
Operand arg_reduce(OpWriter& g, const Node& node) {
    const Operand x = node.x();
    const std::string_view op = node.op == "ArgMax" ? "arg_max" : "arg_min";
    const int axis = g.axis(x, node.integer("axis", 0));
    const NamedAttrs options{
        {"axis", axis}, {"keep_dimensions", node.is_one("keepdims", true)}, {"output_data_type", DType::i64}};
    if (!node.flag("select_last_index", false)) return g.op(op, {x}, options);
    const Operand y = g.op(op, {g.op("reverse", {x}, {{"axes", Axes{axis}}})}, options);
    const Dim last = g.shape(x).at(static_cast<std::size_t>(axis)) - 1;
    return g.op("sub", {g.at_run_time(last, ElementType::i64), y});
}

/// Before operator set 13 the axes from `axis` on are one.
template <class F>
Operand along_axis_or_matrix(OpWriter& g, const Node& node, F function) {
    const Operand x = node.x();
    const Shape sizes = g.shape(x);
    const auto rank = static_cast<std::int64_t>(sizes.size());
    if (node.opset >= 13) return function(x, g.axis(x, node.integer("axis", -1)));
    std::int64_t axis = node.integer("axis", 1);
    axis += axis < 0 ? rank : 0;
    invalid_if(axis < 0 || axis > rank, "axis {} is outside the dimensions of {}", node.integer("axis", 1),
               str(sizes));
    if (axis == rank - 1) return function(x, static_cast<int>(axis));
    const std::span<const Dim> all(sizes);
    const auto at = static_cast<std::size_t>(axis);
    const Operand flat = g.reshape(x, {product_of(all.first(at)), product_of(all.subspan(at))});
    return g.reshape(function(flat, 1), sizes);
}

Operand softmax(OpWriter& g, const Node& node) {
    return along_axis_or_matrix(g, node, [&](const Operand& x, int axis) {
        return g.op("softmax", {x}, {{"axis", axis}});
    });
}

Operand log_softmax(OpWriter& g, const Node& node) {
    return along_axis_or_matrix(g, node, [&](const Operand& x, int axis) {
        const NamedAttrs options{{"axes", Axes{axis}}, {"keep_dimensions", true}};
        return g.op("sub", {x, g.op("reduce_log_sum_exp", {x}, options)});
    });
}

/// 1 at the first of the largest elements, else 0.
Operand hardmax(OpWriter& g, const Node& node) {
    return along_axis_or_matrix(g, node, [&](const Operand& x, int axis) {
        const Dim extent = g.shape(x).at(static_cast<std::size_t>(axis));
        const Operand largest = g.op(
            "arg_max", {x}, {{"axis", axis}, {"keep_dimensions", true}, {"output_data_type", DType::i64}});
        const Operand places = g.add_axes(g.positions(extent), g.rank(x) - 1 - axis);
        return g.cast(g.op("equal", {places, largest}), x->type);
    });
}

/// Calls an op along an axis that is the node's second input.
template <class F>
Operand along_input_axis(OpWriter& g, const Node& node, F function) {
    if (is_known(node.operand(1)))
        return function(node.x(), g.axis(node.x(), node.integer_at(1, "the axis")));
    const auto [parts, sizes] = around(g, node.x(), Numbers(g, node.operand(1)));
    return g.reshape(function(parts, 1), sizes);
}

Operand cumulative_sum(OpWriter& g, const Node& node) {
    return along_input_axis(g, node, [&](const Operand& x, int axis) {
        return g.op("cumulative_sum", {x},
                    {{"axis", axis},
                     {"exclusive", node.flag("exclusive", false)},
                     {"reversed", node.flag("reverse", false)}});
    });
}

/// Every element so much further on, with ones before.
Operand moved_on(OpWriter& g, const Operand& x, int axis, std::int64_t distance) {
    Shape ones = g.shape(x);
    Dim& extent = ones.at(static_cast<std::size_t>(axis));
    const Dim kept = largest({0, extent - distance});
    extent = extent - kept;
    return g.concat({g.filled(1, x->type, ones), g.cut(x, axis, 0, kept)}, axis);
}

/// In as many steps as the extent has bits: each multiplies by what lies twice as far before.
Operand cumulative_product(OpWriter& g, const Node& node) {
    const bool backwards = node.flag("reverse", false), exclusive = node.flag("exclusive", false);
    std::int64_t longest = 1;
    for (const Dim& d : g.shape(node.x())) longest = std::max(longest, d.max_size());
    return along_input_axis(g, node, [&](const Operand& input, int axis) {
        const NamedAttrs axes{{"axes", Axes{axis}}};
        Operand x = backwards ? g.op("reverse", {input}, axes) : input;
        const Dim extent = g.shape(x).at(static_cast<std::size_t>(axis));
        const std::int64_t most =
            std::min({extent.is_symbolic() ? longest : std::min(extent.size(), longest), kLargestExtent});
        if (exclusive) x = moved_on(g, x, axis, 1);
        for (std::int64_t far = 1; most > 1 && far <= most; far *= 2)
            x = g.op("mul", {x, moved_on(g, x, axis, far)});
        return backwards ? g.op("reverse", {x}, axes) : x;
    });
}

}  // namespace

std::span<const Operator> reduction_operators() {
    static const Operator kOperators[] = {
        {"ArgMax", 1, arg_reduce,
         "1 -> 1, axis int, keepdims int; 12: 1 -> 1, axis int, keepdims int, select_last_index int"},
        {"ArgMin", 1, arg_reduce,
         "1 -> 1, axis int, keepdims int; 12: 1 -> 1, axis int, keepdims int, select_last_index int"},
        {"CumProd", 26, cumulative_product, "2 -> 1, exclusive int, reverse int"},
        {"CumSum", 11, cumulative_sum, "2 -> 1, exclusive int, reverse int"},
        {"Hardmax", 1, hardmax, "1 -> 1, axis int"},
        {"LogSoftmax", 1, log_softmax, "1 -> 1, axis int"},
        {"ReduceL1", 1, reduction("reduce_l1"),
         "1 -> 1, axes ints, keepdims int; 18: 1..2 -> 1, keepdims int, noop_with_empty_axes int"},
        {"ReduceL2", 1, reduction("reduce_l2"),
         "1 -> 1, axes ints, keepdims int; 18: 1..2 -> 1, keepdims int, noop_with_empty_axes int"},
        {"ReduceLogSum", 1, reduction("reduce_log_sum"),
         "1 -> 1, axes ints, keepdims int; 18: 1..2 -> 1, keepdims int, noop_with_empty_axes int"},
        {"ReduceLogSumExp", 1, reduction("reduce_log_sum_exp"),
         "1 -> 1, axes ints, keepdims int; 18: 1..2 -> 1, keepdims int, noop_with_empty_axes int"},
        {"ReduceMax", 1, reduction("reduce_max"),
         "1 -> 1, axes ints, keepdims int; 18: 1..2 -> 1, keepdims int, noop_with_empty_axes int"},
        {"ReduceMean", 1, reduction("reduce_mean"),
         "1 -> 1, axes ints, keepdims int; 18: 1..2 -> 1, keepdims int, noop_with_empty_axes int"},
        {"ReduceMin", 1, reduction("reduce_min"),
         "1 -> 1, axes ints, keepdims int; 18: 1..2 -> 1, keepdims int, noop_with_empty_axes int"},
        {"ReduceProd", 1, reduction("reduce_product"),
         "1 -> 1, axes ints, keepdims int; 18: 1..2 -> 1, keepdims int, noop_with_empty_axes int"},
        {"ReduceSum", 1, reduction("reduce_sum"),
         "1 -> 1, axes ints, keepdims int; 13: 1..2 -> 1, keepdims int, noop_with_empty_axes int"},
        {"ReduceSumSquare", 1, reduction("reduce_sum_square"),
         "1 -> 1, axes ints, keepdims int; 18: 1..2 -> 1, keepdims int, noop_with_empty_axes int"},
        {"Softmax", 1, softmax, "1 -> 1, axis int"},
    };
    return kOperators;
}

}  // namespace headrace::onnx
