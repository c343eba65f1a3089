#include "doors/onnx/ops/open_resampling.h"

#include <array>
#include <cmath>

#include "doors/onnx/reading/item_arithmetic.h"
#include "doors/onnx/reading/numbers.h"

namespace headrace::onnx {
namespace {

constexpr ElementType kReal = ElementType::f32;

/// Up where what floor leaves is at least so much.
Operand rounded_from(OpWriter& g, const Operand& x, double least) {
    const Operand low = g.op("floor", {x});
    const Operand is_up = g.op("greater_or_equal", {g.op("sub", {x, low}), known(least, kReal)});
    return g.op("add", {low, g.cast(is_up, kReal)});
}

Operand rounded_points(OpWriter& g, const Operand& points, const Node& node) {
    const std::string mode = node.text("nearest_mode", "round_prefer_floor");
    if (mode == "floor" || mode == "ceil") return g.op(mode, {points});
    return rounded_from(g, points, mode == "round_prefer_ceil" ? 0.5 - kTie : 0.5 + kTie);
}

Operand one_where_zero(OpWriter& g, const Operand& x) {
    return g.op("where", {g.op("equal", {x, known(0, kReal)}), known(1, kReal), x});
}

/// The outermost elements of both lie at the same places.
Operand aligned_points(OpWriter& g, const ResizedAxis& axis, const Operand& x) {
    Operand last;
    if (const Operand told = told_by(axis.scale))  // the last element is where the scale puts it, between two
        last = one_where_zero(g, g.plus(g.times(told, Item(axis.size)), -1.0));
    else
        last = g.at_run_time(Item(largest({axis.out - 1, 1})), kReal);
    return g.op("div", {g.times(x, Item(axis.size - 1)), last});
}

/// From the region's start to its end; a lone element is in the middle.
Operand points_of_region(OpWriter& g, const ResizedAxis& axis, const Operand& x) {
    const Operand start = given_at_run_time(g, axis.start, kReal),
                  end = given_at_run_time(g, axis.end, kReal);
    const Operand last = g.at_run_time(Item(axis.size - 1), kReal);
    const Operand steps = g.plus(g.at_run_time(Item(axis.out), kReal), -1.0);
    const Operand is_lone = g.op("equal", {steps, known(0, kReal)});
    // Rounded as ONNX Runtime does it.
    const Operand whole = g.op("mul", {g.op("mul", {x, g.op("sub", {end, start})}), last});
    const Operand moved = g.op("div", {whole, g.op("where", {is_lone, known(1, kReal), steps})});
    const Operand middle = g.times(g.op("add", {start, end}), 0.5);
    const Operand begin = g.op("where", {is_lone, middle, start});
    return g.op("add", {g.op("mul", {begin, last}), moved});
}

/// All but the offset in double precision, as ONNX Runtime has it.
Operand symmetric_points(OpWriter& g, const ResizedAxis& axis, const Operand& x, const Operand& scale) {
    const Operand out = g.at_run_time(Item(axis.out), kReal);
    const Operand share = g.op("neg", {g.op("div", {out, g.times(scale, Item(axis.size))})});
    const Operand offset = g.cast(g.times(g.plus(share, 1.0), Item(axis.size, 2)), ElementType::f64);
    const Operand middle =
        g.op("div", {g.plus(g.cast(x, ElementType::f64), 0.5), g.cast(scale, ElementType::f64)});
    return g.cast(g.op("add", {g.plus(middle, -0.5), offset}), kReal);
}

Operand open_points(OpWriter& g, const ResizedAxis& axis, const std::string& transformation) {
    const Operand x = g.cast(g.positions(axis.out), kReal);
    if (transformation == "align_corners") return aligned_points(g, axis, x);
    if (transformation == "tf_crop_and_resize") return points_of_region(g, axis, x);
    const Operand scale = given_at_run_time(g, axis.scale, kReal);
    if (transformation == "half_pixel_symmetric") return symmetric_points(g, axis, x, scale);
    if (transformation == "asymmetric") return g.op("div", {x, scale});
    const Operand middle = g.op("div", {g.plus(x, 0.5), scale});
    if (transformation == "tf_half_pixel_for_nn") return middle;
    const Operand points = g.plus(middle, -0.5);
    if (transformation == "half_pixel") return points;
    return g.times(points,
                   Item(smallest({axis.out - 1, 1})));  // pytorch_half_pixel: a lone element is the first
}

Operand keys_polynomial(OpWriter& g, const Operand& d, const std::array<double, 4>& factors) {
    Operand total = g.times(d, factors[0]);
    total = g.op("mul", {g.plus(total, factors[1]), d});
    total = g.op("mul", {g.plus(total, factors[2]), d});
    return g.plus(total, factors[3]);
}

/// The weights of linear interpolation, or of Keys' kernel (doi:10.1109/TASSP.1981.1163711).
Operand open_weights(OpWriter& g, const Operand& distance, const Node& node) {
    if (node.text("mode", "") != "cubic")
        return g.op("relu", {g.op("linear", {distance}, {{"alpha", -1.0}, {"beta", 1.0}})});
    const double a = node.real("cubic_coeff_a", -0.75);
    const Operand near = keys_polynomial(g, distance, {a + 2, -(a + 3), 0, 1});
    Operand far = keys_polynomial(g, distance, {a, -5 * a, 8 * a, -4 * a});
    far = g.op("where", {g.op("lesser", {distance, known(2, kReal)}), far, known(0, kReal)});
    return g.op("where", {g.op("lesser_or_equal", {distance, known(1, kReal)}), near, far});
}

/// By how much the kernel of a smaller image is wider, and over how many elements it then goes.
std::pair<Operand, Dim> widened(OpWriter& g, const Given& scale, std::int64_t radius) {
    if (const Operand told = told_by(scale)) {
        const Operand wider =
            g.op("max", {g.op("div", {known(1, kReal), g.cast(told, kReal)}), known(1, kReal)});
        const Operand reach =
            g.cast(g.op("ceil", {g.times(wider, static_cast<double>(radius))}), ElementType::i64);
        return {wider, extents_of(g, g.reshape(reach, {1})).front()};
    }
    if (const auto* item = std::get_if<Item>(&scale)) {
        const Item wider = binary_of_items("max", true)(1, quotient_of(1, *item));
        return {g.at_run_time(wider, kReal), ceiling_of(Item(Dim(radius) * wider.above, wider.below))};
    }
    const double wider = std::max(1.0, 1.0 / std::get<double>(scale));
    const double reach = std::ceil(wider * static_cast<double>(radius));
    refuse_if(!(reach <= static_cast<double>(kLargestExtent)),
              "the scale {} makes sums of {:.0f} elements; {} are "
              "the most",
              std::get<double>(scale), 2 * reach, kLargestExtent);
    return {known(wider, kReal), Dim(static_cast<std::int64_t>(reach))};
}

/// A product with a matrix of weights: how many elements one is a sum of is open, too.
Operand antialiased(OpWriter& g, const Operand& image, int dim, const ResizedAxis& axis,
                    const Operand& points, const Node& node) {
    const bool is_inside = node.flag("exclude_outside", false);
    const auto [wider, reach] = widened(g, axis.scale, node.text("mode", "") == "cubic" ? 2 : 1);
    const Dim margin = is_inside ? Dim(0) : reach;
    const Operand count = g.cast(g.positions(axis.size + Dim(2) * margin), kReal);
    const Operand places = g.plus(count, Item(Dim(0) - margin));
    const Operand apart = g.op("sub", {g.reshape(points, {axis.out, 1}), places});
    Operand weights = open_weights(g, g.op("div", {g.op("abs", {apart}), wider}), node);
    const NamedAttrs of_rows{{"axes", std::vector<std::int64_t>{1}}, {"keep_dimensions", true}};
    weights = g.op("div", {weights, g.op("reduce_sum", {weights}, of_rows)});
    Operand x = image;
    if (!is_same(margin, 0)) {
        const Operand inside = g.cast(g.within(places, 0, Item(axis.size - 1)), ElementType::i64);
        x = g.op("gather", {x, inside}, {{"axis", dim}});
    }
    const auto [last, order] = g.swap_to_last(x, dim);
    const Operand y = g.op("matmul", {last, g.cast(g.transpose(weights, {1, 0}), x->type)});
    return g.transpose(y, order);
}

/// A weighted sum of the elements around each point.
Operand interpolated_at(OpWriter& g, const Operand& x, int dim, const ResizedAxis& axis,
                        const Operand& points, const Node& node) {
    const bool is_cubic = node.text("mode", "") == "cubic", is_inside = node.flag("exclude_outside", false);
    const Item last(axis.size - 1);
    const Operand at = is_cubic ? points : g.within(points, 0, last);
    const Operand first = g.op("floor", {at});
    const int behind = g.rank(x) - 1 - dim;
    Operand total, whole;
    for (int k = is_cubic ? -1 : 0; k < (is_cubic ? 3 : 2); ++k) {
        const Operand place = g.plus(first, static_cast<double>(k)), inside = g.within(place, 0, last);
        Operand weight = open_weights(g, g.op("abs", {g.op("sub", {at, place})}), node);
        if (is_inside) weight = g.op("where", {g.op("equal", {inside, place}), weight, known(0, kReal)});
        whole = whole ? g.op("add", {whole, weight}) : weight;
        const Operand taken = g.op("gather", {x, g.cast(inside, ElementType::i64)}, {{"axis", dim}});
        const Operand part = g.op("mul", {taken, g.cast(g.add_axes(weight, behind), x->type)});
        total = total ? g.op("add", {total, part}) : part;
    }
    return is_inside ? g.op("div", {total, g.cast(g.add_axes(whole, behind), x->type)}) : total;
}

}  // namespace

std::string transformation_of(const Node& node) {
    return node.text("coordinate_transformation_mode", "half_pixel");
}

bool is_shifted(const Node& node) {
    const std::string transformation = transformation_of(node);
    return transformation == "tf_half_pixel_for_nn" || transformation == "tf_crop_and_resize";
}

double extrapolation_of(const Node& node) { return node.real("extrapolation_value", 0); }

Operand moved_points(OpWriter& g, const ResizedAxis& axis, const Node& node, const Operand& stays) {
    const Operand points = open_points(g, axis, transformation_of(node));
    Operand is_still = stays;
    if (is_shifted(node)) {
        const Operand is_one = g.op("equal", {given_at_run_time(g, axis.scale, kReal), known(1, kReal)});
        is_still = is_still ? g.op("logical_or", {is_still, is_one}) : is_one;
    }
    if (!is_still) return points;
    return g.op("where", {is_still, g.cast(g.positions(axis.out), kReal), points});
}

Operand is_outside(OpWriter& g, const ResizedAxis& axis, const Operand& points) {
    const Operand last = g.at_run_time(Item(axis.size - 1), kReal);
    return g.op("logical_or", {g.op("lesser", {points, known(0, kReal)}), g.op("greater", {points, last})});
}

Operand resized_open_axis(OpWriter& g, const Operand& x, int dim, const ResizedAxis& axis, const Node& node,
                          const Operand& stays) {
    const Operand points = moved_points(g, axis, node, stays);
    Operand y;
    if (node.text("mode", "nearest") == "nearest") {
        const Operand places = g.within(rounded_points(g, points, node), 0, Item(axis.size - 1));
        y = g.op("gather", {x, g.cast(places, ElementType::i64)}, {{"axis", dim}});
    } else if (node.flag("antialias", false)) {
        y = antialiased(g, x, dim, axis, points, node);
    } else {
        y = interpolated_at(g, x, dim, axis, points, node);
    }
    if (transformation_of(node) != "tf_crop_and_resize") return y;
    const Operand outside = g.add_axes(is_outside(g, axis, points), g.rank(x) - 1 - dim);
    return g.op("where", {outside, known(extrapolation_of(node), x->type), y});
}

}  // namespace headrace::onnx
