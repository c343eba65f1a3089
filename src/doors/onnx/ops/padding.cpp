#include "doors/onnx/ops/padding.h"

#include <algorithm>

#include "doors/onnx/reading/numbers.h"

/// Elements around a tensor, or less of it.
namespace headrace::onnx {
namespace {

/// The catalog's name of a mode; "" for wrap, which it does not have.
std::string catalog_mode(const std::string& mode) {
    if (mode == "constant" || mode == "edge") return mode;
    return mode == "reflect" ? "reflection" : "";
}

std::string pad_mode(const Node& node) {
    const std::string mode = node.text("mode", "constant");
    invalid_if(mode != "wrap" && catalog_mode(mode).empty(),
               "mode is '{}'; constant, edge, reflect and wrap are ONNX's", mode);
    return mode;
}

/// Which element lies at a place before the first or behind the last.
Numbers continued(const Numbers& place, const Numbers& extent, const std::string& mode) {
    if (mode == "wrap") return place.rest(extent);
    if (mode != "reflect") return place;
    const Numbers period = (extent - 1) * 2, rest = place.rest(period);
    return (rest < extent).choose(rest, period - rest);
}

/// By amounts, axes or with a value that are known only at run time.
Operand padded_as_told(OpWriter& g, const Node& node) {
    Operand x = node.x();
    const Shape sizes = g.shape(x);
    const auto rank = static_cast<std::int64_t>(sizes.size());
    const std::string mode = pad_mode(node);
    const Operand axes = node.optional(3);
    const std::int64_t count = axes ? told_count(g, axes, "axes") : rank;
    const Numbers amounts(g, list_of(g, node.operand(1), 2 * count));
    const Shape given = g.shape(amounts.x());
    invalid_if(given.size() != 1 || !is_same(given[0], 2 * count),
               "pads has the shape {}; {} axes need {} amounts", str(given), count, 2 * count);
    const std::vector<std::int64_t> first = counted_list(count);
    std::vector<std::int64_t> second = first;
    for (std::int64_t& place : second) place += count;
    Numbers begin = amounts.at(first), end = amounts.at(second);
    if (axes) {
        const Numbers places = distinct(counted_from_front(Numbers(g, axes), rank));
        const Numbers zeros(g, std::vector<std::int64_t>(sizes.size(), 0));
        begin = zeros.with_at(places, begin);
        end = zeros.with_at(places, end);
    }
    const Operand value =
        node.optional(2) ? g.reshape(g.cast(node.optional(2), x->type), {}) : known(0, x->type);
    // What is taken away is so first; the rest is continued.
    const Numbers cut = (0 - begin).at_least(0), own_sizes(g, sizes);
    const Numbers left = own_sizes - cut - (0 - end).at_least(0);
    const Shape results = (begin + end + own_sizes).extents();
    for (std::int64_t axis = 0; axis < rank; ++axis) {
        const std::vector<std::int64_t> at{axis};
        const Numbers own = left.at(at);
        const Numbers place =
            Numbers(g, g.positions(results.at(static_cast<std::size_t>(axis)))) - begin.at(at).at_least(0);
        const Numbers source = continued(place, own, mode).at_most(own - 1).at_least(0);
        x = g.op("gather", {x, (source + cut.at(at)).x()}, {{"axis", axis}});
        if (mode == "constant") {
            const Numbers is_outside = (place < 0).either(place >= own);
            x = g.op("where", {g.add_axes(is_outside.x(), rank - 1 - axis), value, x});
        }
    }
    return x;
}

AttrValue pad_value(const Node& node) {
    if (node.optional(2))
        return std::visit([](auto v) -> AttrValue { return v; }, node.number(2, "the value"));
    return node.real("value", 0);
}

/// Negative amounts take elements away; mode wrap repeats the input.
Operand pad(OpWriter& g, const Node& node) {
    const Operand x = node.x();
    if (!std::all_of(node.inputs.begin() + 1, node.inputs.end(), &is_known)) return padded_as_told(g, node);
    Shape amounts;
    if (const auto given = node.integer_list("pads")) {
        amounts.assign(given->begin(), given->end());
    } else {
        invalid_if(!node.optional(1),
                   "the amounts are missing (attribute pads, or input 1 from operator set 11 on)");
        amounts = node.dims(1, "the amounts");
    }
    const std::int64_t rank = g.rank(x);
    const auto axes = axes_of(node.optional(3) ? node.integers(3, "the axes") : counted_list(rank), rank);
    invalid_if(amounts.size() != 2 * axes.size(), "pads has {} amounts for {} axes", amounts.size(),
               axes.size());
    Shape begin(static_cast<std::size_t>(rank), 0), end = begin;
    for (std::size_t i = 0; i < axes.size(); ++i) {
        begin[static_cast<std::size_t>(axes[i])] = amounts[i];
        end[static_cast<std::size_t>(axes[i])] = amounts[i + axes.size()];
    }
    const std::string mode = pad_mode(node);
    return with_margin(g, x, begin, end, mode, mode == "constant" ? pad_value(node) : AttrValue(0.0));
}

/// Around the middle to the extents that are wanted: what cannot be halved is cut before, and added behind.
Operand center_crop_pad(OpWriter& g, const Node& node) {
    const Operand x = node.x();
    const Shape own = g.shape(x);
    const auto rank = static_cast<std::int64_t>(own.size());
    const auto axes = axes_of(node.integer_list("axes").value_or(counted_list(rank)), rank);
    const Shape wanted = dims_of(g, node, 1, "the shape", axes.size());
    invalid_if(wanted.size() != axes.size(), "the shape (input 1) has {} extents for {} axes", wanted.size(),
               axes.size());
    Shape begin(own.size(), 0), end = begin;
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const auto at = static_cast<std::size_t>(axes[i]);
        const Dim more = wanted[i] - own[at];
        begin[at] = divided_down(largest({more, 0}), 2) - divided_down(largest({Dim(0) - more, 0}), 2);
        end[at] = more - begin[at];
    }
    return with_margin(g, x, begin, end);
}

Operand wrapped(OpWriter& g, Operand x, const Shape& begin, const Shape& end) {
    for (std::size_t i = 0; i < begin.size(); ++i) {
        if (is_same(begin[i], 0) && is_same(end[i], 0)) continue;
        const Dim extent = g.shape(x)[i];
        invalid_if(is_same(extent, 0), "mode is wrap, and extent {} is 0, with nothing to continue", i);
        // The remainder of what is moved into the positive ones.
        const Operand moved =
            g.plus(g.positions(begin[i] + extent + end[i]), Item(extent * begin[i] - begin[i]));
        const Operand places = g.op("remainder", {moved, g.at_run_time(extent, ElementType::i64)});
        x = g.op("gather", {x, places}, {{"axis", static_cast<std::int64_t>(i)}});
    }
    return x;
}

/// What is added; the rest of an amount is taken away, so that the sum is as short as the amount is.
Shape positive_parts(const Shape& amounts) {
    Shape parts;
    for (const Dim& d : amounts) parts.push_back(largest({0, d}));
    return parts;
}

Shape sums(const Shape& sizes, const Shape& begin, const Shape& end) {
    Shape all;
    for (std::size_t i = 0; i < sizes.size(); ++i) all.push_back(sizes[i] + begin[i] + end[i]);
    return all;
}

/// Whether the result has no element, or none of the input's.
bool leaves_nothing(const Shape& sizes, const Shape& begin, const Shape& end, bool is_constant) {
    const Shape before = positive_parts(begin), after = positive_parts(end), all = sums(sizes, begin, end);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        const Dim left = all[i] - before[i] - after[i];
        if (is_same(all[i], 0) || (is_constant && !left.is_symbolic() && left.size() < 1)) return true;
    }
    return false;
}

double number_of(const AttrValue& value) {
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
    if (const auto* whole = std::get_if<std::uint64_t>(&value)) return static_cast<double>(*whole);
    const auto* real = std::get_if<double>(&value);
    return real ? *real : 0;
}

}  // namespace

Operand with_margin(OpWriter& g, const Operand& x, const Shape& begin, const Shape& end,
                    const std::string& mode, const AttrValue& value) {
    const Shape before = positive_parts(begin), after = positive_parts(end), sizes = g.shape(x);
    if (leaves_nothing(sizes, begin, end, mode == "constant"))
        return g.filled(number_of(value), x->type, sums(sizes, begin, end));
    Operand part = x;
    bool adds = false;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        const Dim first = before[i] - begin[i], last = after[i] - end[i];
        if (!is_same(first, 0) || !is_same(last, 0))
            part = g.cut(part, static_cast<int>(i), first, sizes[i] - first - last);
        adds |= !is_same(before[i], 0) || !is_same(after[i], 0);
    }
    if (!adds) return g.op("identity", {part});
    if (mode == "wrap") return wrapped(g, part, before, after);
    NamedAttrs options{
        {"beginning_padding", before}, {"ending_padding", after}, {"mode", catalog_mode(mode)}};
    if (mode == "constant") options.emplace_back("value", value);
    return g.op("pad", {part}, options);
}

std::span<const Operator> padding_operators() {
    static const Operator kOperators[] = {
        {"CenterCropPad", 18, center_crop_pad, "2 -> 1, axes ints"},
        {"Pad", 1, pad,
         "1 -> 1, mode string, paddings ints, value float; 2: 1 -> 1, mode string, pads ints, value float; "
         "11: 2..3 -> 1, mode string; 18: 2..4 -> 1, mode string"},
        {"Pad", 1, pad, "2..3 -> 1, mode string", kMicrosoft}};
    return kOperators;
}

}  // namespace headrace::onnx
