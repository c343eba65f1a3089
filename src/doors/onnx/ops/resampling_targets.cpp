#include "doors/onnx/ops/resampling_targets.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "doors/onnx/reading/item_arithmetic.h"
#include "doors/onnx/reading/numbers.h"

namespace headrace::onnx {
namespace {

bool is_open_number(const Given& number) {
    const auto* item = std::get_if<Item>(&number);
    return item && !item->is_number();
}

double as_double(const Item& item) {
    return static_cast<double>(item.above.size()) / static_cast<double>(item.below.size());
}

/// Errors: Undecided for a float that products with extents round.
Item exact_scale(const Given& number) {
    if (const auto* item = std::get_if<Item>(&number)) return *item;
    return known(std::get<double>(number), ElementType::f64)->item(0);
}

void check_scale(const Given& scale) {
    const auto* number = std::get_if<double>(&scale);
    invalid_if(number && !(*number > 0 && std::isfinite(*number)), "scales has {}; each is more than 0",
               number ? *number : 0.0);
}

/// Numbers in single precision, as runtimes have them.
Dim scaled_extent(const Dim& size, const Given& scale) {
    const auto* number = std::get_if<double>(&scale);
    if (number && !size.is_symbolic()) {
        const float product = std::floor(static_cast<float>(size.size()) * static_cast<float>(*number));
        return static_cast<std::int64_t>(std::min(product, 4e18F));  // more than can be laid out
    }
    const Item exact = exact_scale(scale);
    return divided_down(size * exact.above, exact.below);
}

ResizedAxis axis_by_item(const Dim& size, const Dim& out, const Item& factor) {
    const bool is_closed = !size.is_symbolic() && !out.is_symbolic() && factor.is_number();
    return {size, out, is_closed ? Given(as_double(factor)) : Given(factor)};
}

std::string policy_of(const Node& node) {
    std::string policy = node.text("keep_aspect_ratio_policy", "stretch");
    invalid_if(policy != "stretch" && policy != "not_larger" && policy != "not_smaller",
               "keep_aspect_ratio_policy is '{}'; stretch, not_larger and not_smaller are ONNX's", policy);
    return policy;
}

/// By a scale that is known only at run time.
ResizedAxis axis_told(OpWriter& g, const Dim& size, const Operand& scale) {
    const Operand factor = g.cast(scale, ElementType::f32);
    const Operand out = g.op("floor", {g.op("mul", {g.at_run_time(Item(size), ElementType::f32), factor})});
    const Shape extent = extents_of(g, g.reshape(g.cast(out, ElementType::i64), {1}));
    return {size, extent.front(), Item::of_run(factor)};
}

/// By a scale whose product with an open extent may be rounded: then it is computed in the run.
ResizedAxis axis_scaled(OpWriter& g, const Dim& size, const Given& scale) {
    try {
        return axis_by_item(size, scaled_extent(size, scale), exact_scale(scale));
    } catch (const Undecided&) {
        const auto* number = std::get_if<double>(&scale);
        if (!number) throw;
        ResizedAxis axis = axis_told(g, size, known(*number, ElementType::f32));
        axis.scale = *number;
        return axis;
    }
}

ResizedAxes by_scales(OpWriter& g, const Shape& sizes, const std::vector<std::int64_t>& axes,
                      const std::vector<Given>& scales) {
    const auto is_open_axis = [&](std::int64_t a) { return sizes[static_cast<std::size_t>(a)].is_symbolic(); };
    const bool is_open = std::ranges::any_of(scales, &is_open_number) || std::ranges::any_of(axes, is_open_axis);
    ResizedAxes result;
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const Dim& size = sizes[static_cast<std::size_t>(axes[i])];
        const int axis = static_cast<int>(axes[i]);
        check_scale(scales[i]);
        const auto* number = std::get_if<double>(&scales[i]);
        if (const Operand told = told_by(scales[i]))
            result.emplace(axis, axis_told(g, size, told));
        else if (is_open)
            result.emplace(axis, axis_scaled(g, size, scales[i]));
        else if (number && *number != 1)
            result.emplace(axis, ResizedAxis{size, scaled_extent(size, scales[i]), *number});
    }
    return result;
}

/// One factor for all axes by the policy, and the extents that it gives.
void keep_ratio(const std::string& policy, const Shape& own, std::vector<Item>& factors, Shape& outs) {
    const BinaryItem choose = binary_of_items(policy == "not_larger" ? "min" : "max", true);
    Item factor = factors.at(0);
    for (const Item& other : factors) factor = choose(factor, other);
    factors.assign(factors.size(), factor);
    for (std::size_t i = 0; i < own.size(); ++i)
        outs[i] = divided_down(Dim(2) * own[i] * factor.above + factor.below, Dim(2) * factor.below);
}

ResizedAxes by_open_sizes(const std::string& policy, const Shape& own, const std::vector<std::int64_t>& axes,
                          Shape outs) {
    std::vector<Item> factors;
    for (std::size_t i = 0; i < own.size(); ++i) factors.emplace_back(outs[i], own[i]);
    if (policy != "stretch") keep_ratio(policy, own, factors, outs);
    ResizedAxes result;
    for (std::size_t i = 0; i < own.size(); ++i)
        result.emplace(static_cast<int>(axes[i]), axis_by_item(own[i], outs[i], factors[i]));
    return result;
}

ResizedAxes by_known_sizes(const std::string& policy, const std::vector<std::int64_t>& own,
                           const std::vector<std::int64_t>& axes, std::vector<std::int64_t> outs) {
    std::vector<double> factors;
    for (std::size_t i = 0; i < own.size(); ++i)
        factors.push_back(own[i] != 0 ? static_cast<double>(outs[i]) / static_cast<double>(own[i]) : 1.0);
    if (policy != "stretch" && !own.empty()) {
        const double factor =
            policy == "not_larger" ? std::ranges::min(factors) : std::ranges::max(factors);
        factors.assign(own.size(), factor);
        for (std::size_t i = 0; i < own.size(); ++i)
            outs[i] = static_cast<std::int64_t>(
                std::min(std::floor(factor * static_cast<double>(own[i]) + 0.5), 4e18));
    }
    ResizedAxes result;
    for (std::size_t i = 0; i < own.size(); ++i)
        result.emplace(static_cast<int>(axes[i]), ResizedAxis{own[i], outs[i], factors[i]});
    return result;
}

}  // namespace

bool ResizedAxis::is_open() const {
    return size.is_symbolic() || out.is_symbolic() || is_open_number(scale) || is_open_number(start) ||
           is_open_number(end);
}

bool ResizedAxis::is_exact() const {
    if (const auto* number = std::get_if<double>(&scale)) {
        if (size.is_symbolic() || out.is_symbolic() || size.is(0)) return false;  // only rounded ones are so
        return *number == static_cast<double>(out.size()) / static_cast<double>(size.size());
    }
    const Item& item = std::get<Item>(scale);
    return !item.told && is_same(size * item.above, out * item.below);
}

Operand told_by(const Given& number) {
    const auto* item = std::get_if<Item>(&number);
    return item ? item->told : nullptr;
}

Operand given_at_run_time(OpWriter& g, const Given& number, ElementType type) {
    if (const auto* item = std::get_if<Item>(&number)) return g.at_run_time(*item, type);
    return known(std::get<double>(number), type);
}

ResizedAxes resize_targets(OpWriter& g, const Node& node, const std::vector<std::int64_t>& axes,
                           const std::optional<std::vector<Given>>& scales, const std::optional<Shape>& wanted) {
    const Shape sizes = g.shape(node.x());
    const std::size_t count = wanted ? wanted->size() : scales->size();
    invalid_if(count != axes.size(), "there are {} sizes or scales for {} axes", count, axes.size());
    if (!wanted) return by_scales(g, sizes, axes, *scales);
    invalid_if(std::ranges::any_of(*wanted, [](const Dim& d) { return !d.is_symbolic() && d.size() < 1; }),
               "the sizes are {}; each is at least 1", str(*wanted));
    const std::string policy = policy_of(node);
    Shape own;
    for (std::int64_t a : axes) own.push_back(sizes[static_cast<std::size_t>(a)]);
    if (is_open(*wanted) || is_open(own)) return by_open_sizes(policy, own, axes, *wanted);
    return by_known_sizes(policy, numbers_of(own), axes, numbers_of(*wanted));
}

}  // namespace headrace::onnx
