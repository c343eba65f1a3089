#include "doors/onnx/ops/resampled_integers.h"

#include <array>
#include <ranges>

#include "doors/onnx/ops/closed_resampling.h"
#include "doors/onnx/ops/open_resampling.h"

namespace headrace::onnx {
namespace {

/// A place and a weight for each element of the result.
struct Neighbor {
    Operand place, share;
};

/// The nearer to 0 first. At the last element both are that one, with halves of the weight, or all of it and
/// none.
std::array<Neighbor, 2> neighbors_of(OpWriter& g, const ResizedAxis& axis, const Operand& points,
                                     bool halves) {
    const Item last(axis.size - 1);
    const Operand at = g.within(points, 0, last), low = g.op("floor", {at});
    const Operand high = g.within(g.plus(low, 1.0), 0, last);
    const Operand is_last = g.op("equal", {low, high});
    const auto share = [&](double of_last, const Operand& other) {
        const Operand distance = g.op("abs", {g.op("sub", {at, other})});
        return g.op("where", {is_last, known(of_last, ElementType::f32), distance});
    };
    return {Neighbor{g.cast(low, ElementType::i64), share(halves ? 0.5 : 1.0, high)},
            Neighbor{g.cast(high, ElementType::i64), share(halves ? 0.5 : 0.0, low)}};
}

/// Halves go up where ONNX Runtime sums up in fixed point, which it does for 8 bits, and away from 0
/// elsewhere.
Operand rounded_to(OpWriter& g, const Operand& y, ElementType type) {
    const auto half_up = [&](const Operand& x) { return g.op("floor", {g.plus(x, 0.5)}); };
    const auto clamped = [&](double least, double most) {
        return g.cast(g.op("clamp", {half_up(y)}, {{"min_value", least}, {"max_value", most}}), type);
    };
    if (type == ElementType::u8) return clamped(0, 255);
    if (type == ElementType::i8) return clamped(-128, 127);
    return g.cast(g.op("mul", {g.op("sign", {y}), half_up(g.op("abs", {y}))}), type);
}

}  // namespace

Operand antialiased_integers(OpWriter& g, const Node& node, const Operand& x,
                             const std::vector<std::pair<int, ResizedAxis>>& axes, const Operand& stays) {
    Operand y = x;
    for (const auto& [dim, axis] : std::views::reverse(axes)) {
        const Operand real = g.cast(y, ElementType::f32);
        y = rounded_to(g,
                       stays || axis.is_open() ? resized_open_axis(g, real, dim, axis, node, stays)
                                               : resized_closed_axis(g, real, dim, axis, node),
                       x->type);
    }
    return y;
}

Operand interpolated_integers(OpWriter& g, const Node& node, const Operand& x,
                              const std::vector<std::pair<int, ResizedAxis>>& axes, const Operand& stays) {
    const std::string mode = node.text("mode", "linear");
    if (mode == "cubic")
        throw Refused(
            fmt::format("mode is cubic, and the image is {}; integers are interpolated linearly, or "
                        "with antialias=1",
                        name_of(x->type)),
            "Cast the image to float before it");
    const int rank = g.rank(x);
    std::vector<Operand> points;
    std::vector<std::array<Neighbor, 2>> neighbors;
    for (const auto& [dim, axis] : axes) {
        points.push_back(moved_points(g, axis, node, stays));
        neighbors.push_back(neighbors_of(g, axis, points.back(), dim >= rank - 2));
    }
    Operand total;
    for (unsigned corner = 0; corner < 1U << axes.size(); ++corner) {
        Operand part = g.cast(x, ElementType::f32), weight = known(1, ElementType::f32);
        for (std::size_t i = axes.size(); i-- > 0;) {
            const Neighbor& side = neighbors[i][corner >> (axes.size() - 1 - i) & 1U];
            part = g.op("gather", {part, side.place}, {{"axis", axes[i].first}});
            weight = g.op("mul", {weight, g.add_axes(side.share, rank - 1 - axes[i].first)});
        }
        part = g.op("mul", {weight, part});
        total = total ? g.op("add", {total, part}) : part;
    }
    Operand y = g.cast(total, x->type);
    if (transformation_of(node) != "tf_crop_and_resize") return y;
    const Operand value = g.cast(known(extrapolation_of(node), ElementType::f32), x->type);
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const Operand outside = is_outside(g, axes[i].second, points[i]);
        y = g.op("where", {g.add_axes(outside, rank - 1 - axes[i].first), value, y});
    }
    return y;
}

}  // namespace headrace::onnx
