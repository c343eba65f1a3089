#include "doors/onnx/reading/fold_items.h"

#include <algorithm>
#include <map>

#include "doors/onnx/reading/extents.h"
#include "doors/onnx/reading/item_arithmetic.h"
#include "doors/onnx/reading/reference.h"
#include "doors/onnx/reading/refused.h"
#include "ir/constant.h"
#include "ops/catalog.h"

namespace headrace::onnx {
namespace {

using Moved = std::optional<std::vector<Elements>>;

/// Operands that are moved, of ops that move elements and nothing else; -1: all of them.
const std::map<std::string_view, std::vector<int>> kMoving{
    {"identity", {0}},      {"reshape", {0}},
    {"transpose", {0}},     {"slice", {0}},
    {"expand", {0}},        {"gather", {0}},
    {"split", {0}},         {"tile", {0}},
    {"reverse", {0}},       {"gather_elements", {0}},
    {"gather_nd", {0}},     {"concat", {-1}},
    {"scatter_nd", {0, 2}}, {"scatter_elements", {0, 2}},
    {"where", {1, 2}},
};

bool moves(const std::vector<int>& moved, int operand) {
    return std::ranges::find(moved, -1) != moved.end() || std::ranges::find(moved, operand) != moved.end();
}

/// Its attribute, or an absent one.
AttrValue named(const KnownCall& call, std::string_view name) {
    for (const auto& [key, value] : call.attrs)
        if (key == name) return value;
    return {};
}

/// Places 0, 1, 2, ... of all moved operands' elements, moved by the kernel, say whose elements results have.
Moved moved(const KnownCall& call, const std::vector<int>& which) {
    std::vector<Item> all;
    std::vector<std::vector<std::int64_t>> places;
    std::vector<ReferenceOperand> operands;
    places.reserve(call.operands.size());
    for (std::size_t k = 0; k < call.operands.size(); ++k) {
        const Operand& x = call.operands[k];
        operands.emplace_back();
        if (!x) continue;
        if (!moves(which, static_cast<int>(k))) {
            if (!x->has_numbers()) return std::nullopt;  // the places are open themselves
            operands.back() = {stored_type(x), x->known->data->bytes};
            continue;
        }
        std::vector<std::int64_t>& own = places.emplace_back();
        for (std::int64_t i = 0; i < x->known->count(); ++i) {
            own.push_back(static_cast<std::int64_t>(all.size()));
            all.push_back(x->item(i));
        }
        operands.back() = {{DType::i64, stored_type(x).shape}, std::as_bytes(std::span(own))};
    }
    auto kernel_results = by_reference(call.op, call.box, operands, kMostFolded);
    if (!kernel_results) return std::nullopt;
    Moved results(std::in_place);
    for (Folded& folded : *kernel_results) {
        Elements& result = results->emplace_back(std::move(folded.elements));
        const std::byte* data = result.data->bytes.data();
        for (std::int64_t i = 0; i < result.count(); ++i)
            result.items.push_back(
                all[static_cast<std::size_t>(number_as<std::int64_t>(number_at(DType::i64, data, i)))]);
        result.data = nullptr;
    }
    return results;
}

/// An operand's items as a shape to which it broadcasts has them.
std::vector<Item> broadcast_items(const Operand& x, const std::vector<std::int64_t>& shape) {
    std::vector<Item> items;
    std::int64_t count = 1;
    for (std::int64_t extent : shape) count *= extent;
    const auto& own = x->known->shape;
    for (std::int64_t i = 0; i < count; ++i) {
        std::int64_t left = i, place = 0, step = 1;
        for (std::size_t d = 0; d < shape.size(); ++d) {  // from the last dimension on
            const std::int64_t index = left % shape[shape.size() - 1 - d];
            left /= shape[shape.size() - 1 - d];
            if (d >= own.size()) continue;
            const std::int64_t extent = own[own.size() - 1 - d];
            if (extent != 1) place += index * step;
            step *= extent;
        }
        items.push_back(x->item(place));
    }
    return items;
}

std::optional<std::vector<std::int64_t>> joint_shape(std::span<const Operand> operands) {
    std::vector<std::int64_t> joint;
    for (const Operand& x : operands) {
        const auto& own = x->known->shape;
        if (own.size() > joint.size()) joint.insert(joint.begin(), own.size() - joint.size(), 1);
        for (std::size_t d = 0; d < own.size(); ++d) {
            std::int64_t& extent = joint[joint.size() - own.size() + d];
            if (extent != 1 && own[d] != 1 && extent != own[d]) return std::nullopt;
            if (own[d] != 1) extent = own[d];
        }
    }
    std::int64_t count = 1;
    for (std::int64_t extent : joint)
        if (__builtin_mul_overflow(count, extent, &count) || count > kMostFolded) return std::nullopt;
    return joint;
}

template <class F>
Moved elementwise(std::span<const Operand> operands, F function) {
    const auto shape = joint_shape(operands);
    if (!shape) return std::nullopt;
    std::vector<std::vector<Item>> parts;
    for (const Operand& x : operands) parts.push_back(broadcast_items(x, *shape));
    Elements result{.shape = *shape, .data = nullptr, .items = {}};
    for (std::size_t i = 0; i < parts[0].size(); ++i) result.items.push_back(function(parts, i));
    return std::vector{std::move(result)};
}

Moved cast_items(const KnownCall& call) {
    const auto* target = std::get_if<DType>(&call.attrs.at(0).second);
    if (!target) return std::nullopt;
    const bool to_whole = !is_float(element_type(*target));
    if (to_whole && headrace::bits_of(*target) < 32) return std::nullopt;  // it would keep the low bits
    return elementwise(call.operands, [&](const auto& parts, std::size_t i) {
        const Item& item = parts[0][i];
        return to_whole && !item.told ? Item(toward_zero(item)) : item;
    });
}

Moved clamped_items(const KnownCall& call) {
    const auto bound = [&](std::string_view name) -> std::optional<Item> {
        const AttrValue value = named(call, name);
        if (const auto* whole = std::get_if<std::int64_t>(&value)) return Item(*whole);
        if (const auto* real = std::get_if<double>(&value)) return known(*real, ElementType::f64)->item(0);
        return std::nullopt;
    };
    const auto low = bound("min_value"), high = bound("max_value");
    const BinaryItem above = binary_of_items("max", true), below = binary_of_items("min", true);
    return elementwise(call.operands, [&](const auto& parts, std::size_t i) {
        Item item = parts[0][i];
        if (low) item = above(item, *low);
        return high ? below(item, *high) : item;
    });
}

const std::map<std::string_view, std::string_view> kReductions{
    {"reduce_sum", "add"}, {"reduce_product", "mul"}, {"reduce_max", "max"}, {"reduce_min", "min"}};

/// Along axes, one after the other: those before it, it, and those behind.
Moved reduced_items(const KnownCall& call, std::string_view by) {
    const BinaryItem join = binary_of_items(by, true);
    const Operand& x = call.operands[0];
    const AttrValue axes_value = named(call, "axes"), keep_value = named(call, "keep_dimensions");
    const auto* axes = std::get_if<std::vector<std::int64_t>>(&axes_value);
    const auto* keep = std::get_if<bool>(&keep_value);
    if (!axes) return std::nullopt;
    std::vector<std::int64_t> shape = x->known->shape;
    std::vector<Item> items;
    for (std::int64_t i = 0; i < x->known->count(); ++i) items.push_back(x->item(i));
    for (std::int64_t axis : *axes) {
        const auto at = static_cast<std::size_t>(axis);
        if (at >= shape.size() || shape[at] == 0) return std::nullopt;
        std::int64_t after = 1;
        for (std::size_t d = at + 1; d < shape.size(); ++d) after *= shape[d];
        std::vector<Item> totals;
        const auto block = static_cast<std::size_t>(after * shape[at]);
        for (std::size_t begin = 0; begin < items.size(); begin += block)
            for (std::int64_t i = 0; i < after; ++i) {
                Item total = items[begin + static_cast<std::size_t>(i)];
                for (std::int64_t j = 1; j < shape[at]; ++j)
                    total = join(total, items[begin + static_cast<std::size_t>(j * after + i)]);
                totals.push_back(std::move(total));
            }
        items = std::move(totals);
        shape[at] = 1;
    }
    if (!keep || !*keep) {
        std::vector<std::int64_t> kept;
        for (std::size_t d = 0; d < shape.size(); ++d)
            if (std::ranges::find(*axes, static_cast<std::int64_t>(d)) == axes->end())
                kept.push_back(shape[d]);
        shape = std::move(kept);
    }
    return std::vector{Elements{.shape = std::move(shape), .data = nullptr, .items = std::move(items)}};
}

Moved running_sum(const KnownCall& call) {
    const Operand& x = call.operands[0];
    const auto is_set = [&](std::string_view name) {
        const AttrValue value = named(call, name);
        return std::get_if<bool>(&value) && std::get<bool>(value);
    };
    if (x->known->shape.size() != 1 || is_set("exclusive") || is_set("reversed")) return std::nullopt;
    Elements result{.shape = x->known->shape, .data = nullptr, .items = {}};
    for (std::int64_t i = 0; i < x->known->count(); ++i)
        result.items.push_back(i == 0 ? x->item(i) : sum_of(result.items.back(), x->item(i)));
    return std::vector{std::move(result)};
}

Moved arithmetic(const KnownCall& call) {
    const std::string_view op = call.op.name;
    const Operand& x = call.operands[0];
    if (op == "cast") return cast_items(call);
    if (op == "clamp") return clamped_items(call);
    if (op == "cumulative_sum") return running_sum(call);
    if (const auto by = kReductions.find(op); by != kReductions.end()) return reduced_items(call, by->second);
    if (op == "where")
        return elementwise(call.operands, [](const auto& parts, std::size_t i) {
            return either_of(parts[0][i], parts[1][i], parts[2][i]);
        });
    if (call.operands.size() == 1)
        if (const UnaryItem function = unary_of_items(op))
            return elementwise(call.operands,
                               [&](const auto& parts, std::size_t i) { return function(parts[0][i]); });
    if (call.operands.size() == 2)
        if (const BinaryItem function = binary_of_items(op, x->is_float()))
            return elementwise(call.operands, [&](const auto& parts, std::size_t i) {
                return function(parts[0][i], parts[1][i]);
            });
    return std::nullopt;
}

}  // namespace

std::optional<std::vector<Folded>> folded_items(const KnownCall& call) {
    if (std::ranges::any_of(call.operands, [](const Operand& x) { return x == nullptr; }))
        return std::nullopt;
    try {
        Moved results;
        if (const auto which = kMoving.find(call.op.name); which != kMoving.end())
            results = moved(call, which->second);
        if (!results) results = arithmetic(call);
        if (!results) return std::nullopt;
        std::vector<ReferenceOperand> operands;
        for (const Operand& x : call.operands)
            operands.push_back({stored_type(x), std::span<const std::byte>()});
        const std::vector<TensorType> types = inferred(call.op, call.box, operands);
        std::vector<Folded> typed;
        for (std::size_t i = 0; i < types.size(); ++i)
            typed.push_back({types[i].dtype, std::move(results->at(i))});
        return typed;
    } catch (const Undecided&) {
        return std::nullopt;  // an op at run time, or its error, says the rest
    } catch (const Refused&) {
        return std::nullopt;
    }
}

}  // namespace headrace::onnx
