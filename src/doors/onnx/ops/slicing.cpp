#include "doors/onnx/ops/slicing.h"

#include <algorithm>
#include <cstdlib>

#include "doors/onnx/reading/numbers.h"

/// Slices, also of extents that are known only at run time.
namespace headrace::onnx {
namespace {

constexpr std::int64_t kFar = INT32_MAX;  // from there on a place means "as far as there are elements"

std::int64_t distance(std::int64_t step) { return step < 0 ? -std::max(step, -kFar) : std::min(step, kFar); }

/// Negative places are counted from the end; far ones stay far.
Dim from_the_front(OpWriter& g, const Dim& place, const Dim& extent) {
    if (!place.is_symbolic() && (place.size() >= kFar || place.size() <= -kFar))
        return place.size() < 0 ? Dim(-kFar) : extent + kFar;
    const Dim is_negative = less(place, 0);
    if (is_negative.is_symbolic() && !g.is_short({place, extent})) return place;
    return either(is_negative, place + extent, place);
}

/// Within [0, most]; believed to lie there where that is open and long to say. A run shows it.
Dim clamped(OpWriter& g, const Dim& place, const Dim& most) {
    Dim lower = smallest({place, most});
    if (lower.is_symbolic() && !g.is_short({place, most})) lower = is_same(lower, most) ? most : place;
    return g.at_least_0(lower);
}

/// A window along an axis: its bounds as a node gives them, and the places they are among the elements, of a
/// step down in the reversed order.
struct SliceBounds {
    Dim start, end, first, last, extent;
};

/// How many elements a window has where the larger of 0 and what is between its places is too long to say.
Dim long_count(OpWriter& g, const SliceBounds& w, bool is_down) {
    const Dim between = w.last - w.first;
    const Dim is_start_behind = less(w.start, 0), is_end_behind = less(w.end, 0);
    if (is_start_behind.is_symbolic() || is_end_behind.is_symbolic()) return between;
    if (is_same(is_start_behind, is_end_behind)) {  // counted from one end, places lie as the bounds do
        const Answer is_empty = is_down ? is_at_least(w.end, w.start) : is_at_least(w.start, w.end);
        return is_empty == Answer::yes ? Dim(0) : between;
    }
    if (!g.is_short({w.extent})) return between;
    if (is_same(is_end_behind, 1) && !is_down) return largest({0, w.extent + w.end - w.start});
    const Numbers first(g, Shape{w.first}), last(g, Shape{w.last});
    return (last - first).at_least(0).extents().at(0);
}

/// As many as lie between its bounds; none where its begin lies behind its end.
Dim count_within(OpWriter& g, const SliceBounds& w, bool is_down) {
    const Dim difference = w.last - w.first;
    const bool is_long = difference.is_symbolic() && difference.min_size() < 0 && !g.is_short({difference});
    return is_long ? long_count(g, w, is_down) : g.at_least_0(difference);
}

/// Numbers' bounds as NumPy clips them.
Operand of_numbers(OpWriter& g, const Operand& x, int axis, std::int64_t start,
                   std::optional<std::int64_t> end, std::int64_t step, std::int64_t extent) {
    const bool is_down = step < 0;
    const std::int64_t low = is_down ? -1 : 0, high = is_down ? extent - 1 : extent;
    const auto clipped = [&](std::int64_t place) {
        if (place < 0) place = place < -extent ? low : place + extent;
        return std::clamp(place, std::min(low, high), std::max(low, high));
    };
    const std::int64_t first = clipped(extent > 0 ? std::max(start, -extent) : start);
    const std::int64_t last = end ? clipped(*end) : (is_down ? low : high);
    const std::int64_t by = distance(step), span = is_down ? first - last : last - first;
    const std::int64_t count = span <= 0 ? 0 : (span + by - 1) / by;
    if (count < 2) return g.cut(x, axis, count > 0 ? first : 0, count);
    const std::int64_t final_place = is_down ? first - (count - 1) * by : first;
    const Operand taken = g.cut(x, axis, final_place, (count - 1) * by + 1, by);
    return is_down ? g.op("reverse", {taken}, {{"axes", std::vector<std::int64_t>{axis}}}) : taken;
}

/// Places as a run tells them, along some axes.
struct ToldPlaces {
    std::vector<std::int64_t> axes;
    Numbers extent, starts, ends, steps;
};

ToldPlaces told_places(OpWriter& g, const Node& node, std::int64_t count) {
    const Shape sizes = g.shape(node.x());
    const auto rank = static_cast<std::int64_t>(sizes.size());
    const Numbers starts(g, node.operand(1)), ends(g, node.operand(2));
    const std::vector<std::int64_t> ones(static_cast<std::size_t>(count), 1);
    const Numbers steps = node.optional(4) ? Numbers(g, node.optional(4)) : Numbers(g, ones);
    const Operand axes = node.optional(3);
    if (!axes || is_known(axes)) {
        const auto chosen = axes_of(axes ? node.integers(3, "the axes") : counted_list(count), rank);
        Shape extent;
        for (std::int64_t axis : chosen) extent.push_back(sizes[static_cast<std::size_t>(axis)]);
        return {chosen, Numbers(g, extent), starts, ends, steps};
    }
    const Numbers places = distinct(counted_from_front(Numbers(g, axes), rank)), own(g, sizes);
    const Numbers zeros(g, std::vector<std::int64_t>(sizes.size(), 0));
    const Numbers each(g, std::vector<std::int64_t>(sizes.size(), 1));
    return {counted_list(rank), own, zeros.with_at(places, starts), own.with_at(places, ends),
            each.with_at(places, steps)};
}

/// Lists of places that are themselves what a run cuts out of others, as long as it says: exporters cut one
/// place out, which a run then has to find.
Node with_one_place(OpWriter& g, const Node& node) {
    Node one = node;
    for (std::size_t i = 1; i < one.inputs.size(); ++i)
        if (one.inputs[i] && !is_known(one.inputs[i])) one.inputs[i] = list_of(g, one.inputs[i], 1);
    return one;
}

/// The slice at places that only a run tells.
Operand as_told(OpWriter& g, const Node& node) {
    Operand x = node.x();
    const Shape list = g.shape(node.operand(1));
    invalid_if(list.size() != 1, "the starts (input 1) have the shape {}; they are a list", str(list));
    if (g.is_made(list[0])) return as_told(g, with_one_place(g, node));
    const ToldPlaces at = told_places(g, node, told_count(g, node.operand(1), "axes"));
    if (at.axes.empty()) return g.op("identity", {x});
    const Numbers is_down = at.steps < 0;
    const Numbers low = is_down.choose(-1, 0), high = is_down.choose(at.extent - 1, at.extent);
    const auto within = [&](const Numbers& place, const Numbers& least) {
        return (place < 0).choose(place + at.extent, place).at_least(least).at_most(high);
    };
    const Numbers first = within(at.starts, Numbers(g, 0)), last = within(at.ends, low);
    Numbers stride = is_down.choose(0 - at.steps, at.steps).at_most(std::int64_t{1} << 60);
    if (node.optional(4)) stride = stride.checked("the distance of a step", 1);
    const Numbers span = is_down.choose(first - last, last - first);
    const Numbers counts = (span + stride - 1).divided(stride).at_least(0);
    const std::size_t axes = at.axes.size();
    if (!node.optional(4)) {
        const Shape extents = Numbers(g, g.concat({first.x(), counts.x()}, 0)).extents();
        for (std::size_t i = 0; i < axes; ++i)
            x = g.cut(x, static_cast<int>(at.axes[i]), extents.at(i), extents.at(axes + i));
        return x;
    }
    const Shape sizes = counts.extents();
    for (std::size_t i = 0; i < axes; ++i) {
        const std::vector<std::int64_t> own{static_cast<std::int64_t>(i)};
        const Numbers places = Numbers(g, g.positions(sizes.at(i))) * at.steps.at(own) + first.at(own);
        x = g.op("gather", {x, places.x()}, {{"axis", at.axes[i]}});
    }
    return x;
}

/// Whether they follow from open dimensions: how many elements there are is counted in the run then.
bool has_open_steps(const Operand& steps) { return steps && !steps->has_numbers(); }

Operand slice(OpWriter& g, const Node& node) {
    Operand x = node.x();
    Shape starts, ends;
    std::vector<std::int64_t> axes, steps;
    if (const auto given = node.integer_list("starts")) {
        const auto last = node.integer_list("ends").value_or(std::vector<std::int64_t>());
        starts.assign(given->begin(), given->end());
        ends.assign(last.begin(), last.end());
        axes = node.integer_list("axes").value_or(std::vector<std::int64_t>());
    } else if (!std::all_of(node.inputs.begin() + 1, node.inputs.end(), &is_known) ||
               has_open_steps(node.optional(4))) {
        return as_told(g, node);
    } else {
        starts = node.dims(1, "the starts");
        ends = node.dims(2, "the ends");
        if (node.optional(3)) axes = node.integers(3, "the axes");
        if (node.optional(4)) steps = node.integers(4, "the steps");
    }
    if (axes.empty() && !node.optional(3)) axes = counted_list(static_cast<std::int64_t>(starts.size()));
    if (!node.optional(4)) steps.assign(starts.size(), 1);
    invalid_if(ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size(),
               "starts, ends, axes and steps have {}, {}, {} and {} numbers; as many are needed",
               starts.size(), ends.size(), axes.size(), steps.size());
    axes = axes_of(axes, g.rank(x));
    for (std::size_t i = 0; i < axes.size(); ++i) {
        invalid_if(steps[i] == 0, "the step along axis {} is 0", axes[i]);
        x = sliced(g, x, static_cast<int>(axes[i]), starts[i], ends[i], steps[i]);
    }
    return x == node.x() ? g.op("identity", {x}) : x;
}

}  // namespace

Operand sliced(OpWriter& g, const Operand& x, int axis, const Dim& start, const std::optional<Dim>& end,
               std::int64_t step) {
    const Dim extent = g.shape(x).at(static_cast<std::size_t>(axis));
    if (!extent.is_symbolic() && !start.is_symbolic() && !(end && end->is_symbolic()))
        return of_numbers(g, x, axis, start.size(), end ? std::optional(end->size()) : std::nullopt, step,
                          extent.size());
    Operand from = x;
    Dim first, last = extent;
    if (step < 0) {  // element i is at extent - 1 - i of the reversed order
        from = g.op("reverse", {x}, {{"axes", std::vector<std::int64_t>{axis}}});
        first = clamped(g, extent - 1 - from_the_front(g, start, extent), extent - 1);
        if (end) last = clamped(g, extent - 1 - from_the_front(g, *end, extent), extent);
    } else {
        first = clamped(g, from_the_front(g, start, extent), extent);
        if (end) last = clamped(g, from_the_front(g, *end, extent), extent);
    }
    const Dim count =
        end ? count_within(g, {start, *end, first, last, extent}, step < 0) : g.at_least_0(last - first);
    return g.cut(from, axis, is_same(count, 0) ? Dim(0) : first, count, distance(step));
}

std::span<const Operator> slicing_operators() {
    static const Operator kOperators[] = {
        {"Slice", 1, slice, "1 -> 1, axes ints, ends ints, starts ints; 10: 3..5 -> 1"}};
    return kOperators;
}

}  // namespace headrace::onnx
