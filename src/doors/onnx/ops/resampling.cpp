#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>

#include "doors/onnx/ops/closed_resampling.h"
#include "doors/onnx/ops/open_resampling.h"
#include "doors/onnx/ops/resampled_integers.h"
#include "doors/onnx/reading/numbers.h"

/// Images in other sizes: an axis after the other, as weighted sums of elements.
namespace headrace::onnx {
namespace {

using AxisPairs = std::vector<std::pair<int, ResizedAxis>>;

bool is_one_of(const std::string& text, std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, text) != names.end();
}

/// resample2d's and resample_linear2d's name of a transformation; "" for one that they do not have.
std::string plain_coordinates(const Node& node) {
    const std::string how = transformation_of(node);
    if (how == "half_pixel") return how;
    if (how == "pytorch_half_pixel") return "half_pixel_or_first";
    if (how == "align_corners") return "corners";
    return how == "asymmetric" ? "edges" : "";
}

/// What resample2d does: linear, of the last two axes.
bool is_for_resample2d(const Node& node, const AxisPairs& pairs, int rank) {
    return rank == 4 && node.text("mode", "nearest") == "linear" && !plain_coordinates(node).empty() &&
           !node.flag("antialias", false) && !node.flag("exclude_outside", false) &&
           std::ranges::all_of(pairs,
                               [](const auto& pair) { return pair.first >= 2 && pair.second.is_exact(); });
}

Shape resized_shape(OpWriter& g, const Operand& x, const AxisPairs& pairs) {
    Shape sizes = g.shape(x);
    for (const auto& [dim, axis] : pairs) sizes[static_cast<std::size_t>(dim)] = axis.out;
    return sizes;
}

Operand resampled_plain(OpWriter& g, const Node& node, const Operand& x, const AxisPairs& pairs) {
    const Shape sizes = resized_shape(g, x, pairs), image(sizes.begin() + 2, sizes.end());
    const std::string way = plain_coordinates(node);
    NamedAttrs options{{"sizes", image}, {"axes", std::vector<std::int64_t>{2, 3}}};
    if (way == "half_pixel") {
        options.emplace_back("mode", "linear");
        return g.op("resample2d", {x}, options);
    }
    options.emplace_back("coordinates", way);
    return g.op("resample_linear2d", {x}, options);
}

/// By the scale 1, in every transformation, and whatever region is shown.
bool is_unchanged(const ResizedAxis& axis) {
    if (axis.is_open()) return is_same(axis.size, axis.out) && axis.is_exact();
    return std::get<double>(axis.scale) == 1;
}

/// Whether no extent changes, by which no element does; null where that is known, or makes no difference.
Operand whether_all_stay(OpWriter& g, const Node& node, const AxisPairs& pairs) {
    const auto is_open_axis = [](const auto& pair) { return pair.second.is_open(); };
    const auto is_exact_axis = [](const auto& pair) { return pair.second.is_exact(); };
    if (std::ranges::none_of(pairs, is_open_axis)) return nullptr;
    if (!is_shifted(node) && std::ranges::all_of(pairs, is_exact_axis)) return nullptr;
    Operand all;
    for (const auto& [dim, axis] : pairs)
        if (equals(axis.size, axis.out) == Answer::no) return nullptr;
    for (const auto& [dim, axis] : pairs) {
        if (is_same(axis.size, axis.out)) continue;
        const Operand is_equal = g.op("equal", {g.at_run_time(Item(axis.size), ElementType::i64),
                                                g.at_run_time(Item(axis.out), ElementType::i64)});
        all = all ? g.op("logical_and", {all, is_equal}) : is_equal;
    }
    return all;
}

void check_closed(const AxisPairs& pairs) {
    std::vector<std::int64_t> sizes, outs;
    for (const auto& [dim, axis] : pairs) {
        if (axis.size.is_symbolic() || axis.out.is_symbolic()) continue;
        sizes.push_back(axis.size.size());
        outs.push_back(axis.out.size());
    }
    const auto is_none = [](std::int64_t n) { return n < 1; };
    invalid_if(std::ranges::any_of(sizes, is_none) || std::ranges::any_of(outs, is_none),
               "extents [{}] become [{}]; least is 1", fmt::join(sizes, ", "), fmt::join(outs, ", "));
    const std::int64_t most = outs.empty() ? 1 : std::ranges::max(outs);
    refuse_if(most > kLargestExtent, "an extent becomes {} by the sizes or scales; {} is the most", most,
              kLargestExtent);
}

Operand resized(OpWriter& g, const Node& node, const Operand& x, const ResizedAxes& axes) {
    AxisPairs pairs;
    for (const auto& pair : axes)
        if (!is_unchanged(pair.second)) pairs.emplace_back(pair);
    const auto is_kept = [](const auto& pair) { return is_same(pair.second.size, pair.second.out); };
    if (std::ranges::all_of(pairs, is_kept)) return g.op("identity", {x});  // no transformation is looked at
    if (std::ranges::any_of(pairs, [](const auto& pair) { return pair.second.out.is(0); }))
        return g.filled(0, x->type, resized_shape(g, x, pairs));
    check_closed(pairs);
    const Operand stays = whether_all_stay(g, node, pairs);
    if (node.text("mode", "nearest") != "nearest" && !x->is_float())
        return node.flag("antialias", false) ? antialiased_integers(g, node, x, pairs, stays)
                                             : interpolated_integers(g, node, x, pairs, stays);
    if (is_for_resample2d(node, pairs, g.rank(x))) return resampled_plain(g, node, x, pairs);
    Operand y = x;
    for (const auto& [dim, axis] : pairs)
        y = stays || axis.is_open() ? resized_open_axis(g, y, dim, axis, node, stays)
                                    : resized_closed_axis(g, y, dim, axis, node);
    return y;
}

Given as_given(const Item& item) {
    if (!item.is_number()) return item;
    return static_cast<double>(item.above.size()) / static_cast<double>(item.below.size());
}

/// An input that is a list of numbers; left out, or empty, there is none.
std::optional<std::vector<Given>> given_numbers(OpWriter& g, const Node& node, std::size_t index,
                                                std::string_view what) {
    const Operand x = node.optional(index);
    if (!x || is_same(g.size(x), 0)) return std::nullopt;
    invalid_if(g.rank(x) != 1, "{} (input {}) have {} dimensions; they are a list", what, index, g.rank(x));
    std::vector<Given> numbers;
    if (x->has_numbers()) {
        for (std::int64_t i = 0; i < x->known->count(); ++i) numbers.emplace_back(x->real(i));
    } else if (is_known(x)) {
        for (const Item& item : x->known->items) numbers.push_back(as_given(item));
    } else if (!x->is_float()) {
        for (const Dim& d : extents_of(g, x)) numbers.emplace_back(Item(d));
    } else {
        const std::int64_t count = g.fixed(g.size(x), fmt::format("the number of {}", what));
        OpWriter::check_extent(count);
        for (std::int64_t i = 0; i < count; ++i)
            numbers.emplace_back(Item::of_run(g.reshape(g.cut(x, 0, i, 1), {})));
    }
    return numbers;
}

/// A whole number from 1 on; none for others, and for what is open.
std::optional<std::int64_t> whole_factor(const Given& scale) {
    const auto* number = std::get_if<double>(&scale);
    if (!number || !(*number >= 1 && *number <= static_cast<double>(kLargestExtent))) return std::nullopt;
    if (*number != std::floor(*number)) return std::nullopt;
    return static_cast<std::int64_t>(*number);
}

Operand repeated_along(OpWriter& g, const Operand& x, std::size_t axis, std::int64_t factor) {
    const Shape shape = g.shape(x);
    const auto behind = static_cast<std::ptrdiff_t>(axis) + 1;
    Shape tall = shape;
    tall.insert(tall.begin() + behind, 1);
    Shape wide = tall;
    wide[axis + 1] = factor;
    Shape whole = shape;
    whole[axis] = shape[axis] * Dim(factor);
    return g.reshape(g.expand(g.reshape(x, tall), wide), whole);
}

/// Nearest neighbours at whole factors repeat every element, of however many there are. Null for all else.
Operand repeated(OpWriter& g, const Node& node, const std::vector<Given>& scales,
                 const std::vector<std::int64_t>& axes) {
    const std::string how = transformation_of(node), nearest = node.text("nearest_mode", "");
    const bool is_plain_nearest = (how == "asymmetric" && nearest == "floor") ||
                                  (how == "half_pixel" && nearest != "floor" && nearest != "ceil");
    if (node.text("mode", "nearest") != "nearest" || !is_plain_nearest || scales.size() != axes.size())
        return nullptr;
    const Shape sizes = g.shape(node.x());
    bool has_open = false;
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const auto factor = whole_factor(scales[i]);
        if (!factor) return nullptr;
        has_open |= *factor != 1 && sizes[static_cast<std::size_t>(axes[i])].is_symbolic();
    }
    if (!has_open) return nullptr;
    Operand x = node.x();
    for (std::size_t i = 0; i < axes.size(); ++i)
        if (const std::int64_t factor = *whole_factor(scales[i]); factor != 1)
            x = repeated_along(g, x, static_cast<std::size_t>(axes[i]), factor);
    return x;
}

/// Upsample, and Resize before operator set 11: positions are x / scale, rounded down.
Operand resized_by_old_rules(OpWriter& g, Node node, const std::optional<std::vector<Given>>& scales) {
    if (!scales)
        throw Invalid("the scales are missing (attribute scales, or input 1 from operator set 9 on)");
    const std::int64_t rank = g.rank(node.x());
    invalid_if(static_cast<std::int64_t>(scales->size()) != rank, "scales has {} numbers for {} dimensions",
               scales->size(), rank);
    node.set("coordinate_transformation_mode", "asymmetric");
    node.set("nearest_mode", "floor");
    if (node.text("mode", "nearest") == "bilinear") node.set("mode", "linear");
    const auto axes = counted_list(rank);
    if (const Operand y = repeated(g, node, *scales, axes)) return y;
    return resized(g, node, node.x(), resize_targets(g, node, axes, scales, std::nullopt));
}

void check_modes(const Node& node, const std::string& mode) {
    const std::string how = transformation_of(node),
                      nearest = node.text("nearest_mode", "round_prefer_floor");
    invalid_if(
        !is_one_of(how, {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                         "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"}),
        "coordinate_transformation_mode is '{}'; half_pixel, half_pixel_symmetric, pytorch_half_pixel, "
        "align_corners, asymmetric, tf_half_pixel_for_nn, tf_crop_and_resize are ONNX's",
        how);
    invalid_if(!is_one_of(nearest, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}),
               "nearest_mode is '{}'; round_prefer_floor, round_prefer_ceil, floor, ceil are ONNX's",
               nearest);
    const bool antialias = node.flag("antialias", false);
    if (antialias && mode == "nearest")
        throw Refused(
            "antialias=1, and mode is nearest; a nearest element is no sum, linear and cubic ones are",
            "Set antialias to 0, or mode to linear or cubic");
    if (node.flag("exclude_outside", false) && mode != "cubic" && !(mode == "linear" && antialias))
        throw Refused(
            fmt::format("exclude_outside=1, and mode is {} with antialias={:d}; weights outside are left "
                        "out of cubic sums, and of linear ones with antialias=1",
                        mode, antialias),
            "Set exclude_outside to 0");
}

/// The sizes, an input; none where it is left out or empty.
std::optional<Shape> given_sizes(OpWriter& g, const Node& node) {
    const Operand x = node.optional(3);
    if (!x || is_same(g.size(x), 0)) return std::nullopt;
    invalid_if(x->is_float(), "the sizes (input 3) are {}; they are integers", name_of(x->type));
    return dims_of(g, node, 3, "the sizes");
}

/// The part of the input that is shown.
void set_region(OpWriter& g, const Node& node, const std::vector<std::int64_t>& axes, ResizedAxes& resizes) {
    const auto region = given_numbers(g, node, 1, "the region");
    invalid_if(!region || region->size() != 2 * axes.size(),
               "roi (input 1) must have {} numbers where the mode is tf_crop_and_resize", 2 * axes.size());
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const auto found = resizes.find(static_cast<int>(axes[i]));
        if (found == resizes.end()) continue;
        found->second.start = region->at(i);
        found->second.end = region->at(i + axes.size());
    }
}

Operand resize(OpWriter& g, const Node& node) {
    const std::string mode = node.text("mode", "nearest");
    invalid_if(!is_one_of(mode, {"nearest", "linear", "cubic"}), "mode is '{}'; nearest, linear or cubic",
               mode);
    if (node.opset < 11) return resized_by_old_rules(g, node, given_numbers(g, node, 1, "the scales"));
    check_modes(node, mode);
    const std::int64_t rank = g.rank(node.x());
    auto axes = node.integer_list("axes").value_or(std::vector<std::int64_t>());
    axes = axes_of(axes.empty() ? counted_list(rank) : axes, rank);
    const auto wanted = given_sizes(g, node);
    const auto scales = given_numbers(g, node, 2, "the scales");
    invalid_if(wanted.has_value() == scales.has_value(), "it has {} sizes (input 3); one of them decides",
               wanted ? "scales (input 2) and" : "neither scales (input 2) nor");
    const std::string policy = node.text("keep_aspect_ratio_policy", "stretch");
    if (scales && policy != "stretch")
        throw Refused(
            fmt::format("keep_aspect_ratio_policy is '{}', and it has scales (input 2), which say the ratio "
                        "themselves",
                        policy),
            "Give sizes (input 3), or leave the policy out");
    if (scales)
        if (const Operand y = repeated(g, node, *scales, axes)) return y;
    ResizedAxes resizes = resize_targets(g, node, axes, scales, wanted);
    if (transformation_of(node) == "tf_crop_and_resize") set_region(g, node, axes, resizes);
    return resized(g, node, node.x(), resizes);
}

Operand upsample(OpWriter& g, const Node& node) {
    const std::string mode = node.text("mode", "nearest");
    invalid_if(!is_one_of(mode, {"nearest", "linear", "bilinear"}), "mode is '{}'; nearest or linear", mode);
    const auto scales = node.real_list("scales");
    if (!scales || scales->empty())
        return resized_by_old_rules(g, node, given_numbers(g, node, 1, "the scales"));
    return resized_by_old_rules(g, node, std::vector<Given>(scales->begin(), scales->end()));
}

}  // namespace

std::span<const Operator> resampling_operators() {
    static const Operator kOperators[] = {
        {"Resize", 10, resize,
         "2 -> 1, mode string; 11: 3..4 -> 1, coordinate_transformation_mode string, cubic_coeff_a float, "
         "exclude_outside int, extrapolation_value float, mode string, nearest_mode string; 13: 1..4 -> 1, "
         "coordinate_transformation_mode string, cubic_coeff_a float, exclude_outside int, "
         "extrapolation_value float, mode string, nearest_mode string; 18: 1..4 -> 1, antialias int, axes "
         "ints, coordinate_transformation_mode string, cubic_coeff_a float, exclude_outside int, "
         "extrapolation_value float, keep_aspect_ratio_policy string, mode string, nearest_mode string"},
        {"Upsample", 1, upsample,
         "1 -> 1, height_scale float, mode string, width_scale float; 7: 1 -> 1, mode string, scales floats; "
         "9: 2 -> 1, mode string"}};
    return kOperators;
}

}  // namespace headrace::onnx
