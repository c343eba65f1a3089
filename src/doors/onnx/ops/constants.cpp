#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "doors/onnx/reading/folding.h"
#include "doors/onnx/reading/item_arithmetic.h"
#include "doors/onnx/reading/numbers.h"
#include "doors/onnx/reading/operators.h"

/// Values that come from attributes and shapes.
namespace headrace::onnx {
namespace {

Operand scalar_of(double value, ElementType type) { return known(value, type); }

Operand constant(OpWriter& /*g*/, const Node& node) {
    if (Operand tensor = node.tensor("value")) return tensor;
    if (node.has("value_float")) return scalar_of(node.real("value_float", 0), ElementType::f32);
    if (const auto list = node.real_list("value_floats")) return known(*list, ElementType::f32);
    if (node.has("value_int")) return known(node.integer("value_int"), ElementType::i64);
    if (const auto list = node.integer_list("value_ints")) return known(*list);
    std::vector<std::string> names;
    for (const auto& [name, value] : node.attributes) names.push_back(name);
    throw Refused(
        fmt::format("it has [{}]; value, value_int(s) and value_float(s) are read", fmt::join(names, ", ")),
        "Store it as a dense tensor of numbers");
}

Operand shape_of(OpWriter& g, const Node& node) {
    const Shape sizes = g.shape(node.x());
    const auto rank = static_cast<std::int64_t>(sizes.size());
    const auto place = [&](std::string_view name, std::int64_t otherwise) {
        const std::int64_t at = node.integer(name, otherwise);
        return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank);
    };
    const std::int64_t start = place("start", 0), end = std::max(start, place("end", rank));
    return known(Shape(sizes.begin() + start, sizes.begin() + end));
}

Operand size_of(OpWriter& g, const Node& node) {
    return known({Item(g.size(node.x()))}, {}, ElementType::i64);
}

Operand constant_of_shape(OpWriter& g, const Node& node) {
    const Operand value =
        node.has("value") ? node.tensor("value") : known(std::vector<double>{0}, ElementType::f32);
    invalid_if(value->known->count() != 1, "value has {} elements, not one", value->known->count());
    const Operand filled = g.expand(g.reshape(value, {}), dims_of(g, node, 0, "the shape"));
    if (!filled->is_known()) filled->fill = value->real(0);
    return filled;
}

/// From start on in steps, of numbers that are all known.
Operand numbered_range(const Node& node, ElementType type) {
    const double first = node.x()->real(0), last = node.operand(1)->real(0), step = node.operand(2)->real(0);
    invalid_if(step == 0, "delta (input 2) is 0");
    const double count = std::max(std::ceil((last - first) / step), 0.0);
    refuse_if(!(count <= static_cast<double>(kLargestExtent)), "it would have {} elements; {} are the most",
              count, kLargestExtent);
    std::vector<double> reals;
    std::vector<std::int64_t> wholes;
    const std::int64_t start = node.x()->integer(0), by = node.operand(2)->integer(0);
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(count); ++i) {
        if (is_float(type))
            reals.push_back(first + static_cast<double>(i) * step);
        else
            wholes.push_back(start + i * by);
    }
    return is_float(type) ? known(reals, type) : known(wholes, type);
}

Operand range_as_told(OpWriter& g, const Node& node) {
    const ElementType type = node.x()->type;
    Operand start = g.reshape(node.x(), {}), limit = g.reshape(node.operand(1), {});
    Operand delta = g.reshape(node.operand(2), {});
    const auto counted = [&]() -> Numbers {
        if (start->is_float()) {
            const auto wide = [&](const Operand& x) { return g.cast(x, ElementType::f64); };
            const Operand distance = g.op("sub", {wide(limit), wide(start)});
            return {g, g.op("ceil", {g.op("div", {distance, wide(delta)})})};
        }
        const Numbers distance = Numbers(g, limit) - Numbers(g, start), step(g, delta);
        const Numbers is_down = step < 0;
        const Numbers span = is_down.choose(0 - distance, distance);
        const Numbers by = is_down.choose(0 - step, step).checked("the distance of a step", 1);
        return (span + by - 1).divided(by);
    };
    const Operand places = g.positions(counted().at_least(0).extents().at(0));
    const ElementType through = !start->is_float()         ? ElementType::i64
                                : type == ElementType::f64 ? type
                                                           : ElementType::f32;
    start = g.cast(start, through);
    delta = g.cast(delta, through);
    return g.cast(g.op("add", {g.op("mul", {g.cast(places, through), delta}), start}), type);
}

/// From start up to limit in steps of delta; integers may end at a run-time extent.
Operand range(OpWriter& g, const Node& node) {
    const Operand start = node.x(), limit = node.operand(1), delta = node.operand(2);
    const ElementType type = start->type;
    for (const Operand& x : {start, limit, delta})
        invalid_if(x->is_known() && x->known->count() != 1,
                   "the start, the limit and the step are one number each");
    if (start->has_numbers() && limit->has_numbers() && delta->has_numbers())
        return numbered_range(node, type);
    if (!is_known(start) || !is_known(limit) || !is_known(delta)) return range_as_told(g, node);
    const Item first = start->item(0), step = delta->item(0);
    invalid_if(step.is_number() && step.above.is(0), "delta (input 2) is 0");
    Dim count;
    try {
        count = ceiling_of(quotient_of(difference_of(limit->item(0), first), step));
    } catch (const Undecided&) {  // whether it goes up or down is open
        return range_as_told(g, node);
    }
    const ElementType whole = is_float(type) ? type : ElementType::i64;
    const Operand places = g.cast(g.positions(largest({0, count})), whole);
    return g.cast(g.plus(g.times(places, step), first), type);
}

Operand eye_like(OpWriter& g, const Node& node) {
    const Shape sizes = g.shape(node.x());
    invalid_if(sizes.size() != 2, "the input has {} dimensions, not 2", sizes.size());
    const ElementType type = node.has("dtype") ? type_named(node.integer("dtype"), "dtype") : node.x()->type;
    if (!is_open(sizes))
        refuse_if((sizes[0] * sizes[1]).size() > kLargestExtent, "it would have {} elements; {} are the most",
                  (sizes[0] * sizes[1]).size(), kLargestExtent);
    const Operand row = g.plus(g.reshape(g.positions(sizes[0]), {sizes[0], 1}), Item(node.integer("k", 0)));
    return g.cast(g.op("equal", {row, g.reshape(g.positions(sizes[1]), {1, sizes[1]})}), type);
}

/// Elements where a condition holds, of the flattened input without an axis.
Operand compress(OpWriter& g, const Node& node) {
    Operand x = node.x(), condition = node.operand(1);
    std::int64_t axis = node.integer("axis", 0);
    if (!node.has("axis")) x = g.reshape(x, {g.size(x)});
    const int at = g.axis(x, axis);
    const Dim extent = g.shape(x).at(static_cast<std::size_t>(at)), size = g.size(condition);
    if (condition->has_numbers() && !extent.is_symbolic()) {
        std::vector<std::int64_t> kept;
        for (std::int64_t i = 0; i < std::min(size.size(), extent.size()); ++i)
            if (condition->integer(i) != 0) kept.push_back(i);
        return g.op("gather", {x, known(kept)}, {{"axis", at}});
    }
    condition = g.reshape(condition, {size});
    if (!is_same(size, extent)) {  // what is beyond the extent does not count
        const Operand inside = g.op("lesser", {g.positions(size), g.at_run_time(extent, ElementType::i64)});
        condition = g.op("logical_and", {condition, inside});
    }
    const Dim count = g.counted();
    const Operand kept = g.op("non_zero", {condition}, {{"counts", Shape{count}}});
    return g.op("gather", {x, g.reshape(kept, {count})}, {{"axis", at}});
}

Dim depth_of(OpWriter& g, const Node& node) {
    if (!is_known(node.operand(1))) {
        const Operand depth = g.reshape(g.cast(node.operand(1), ElementType::i64), {1});
        return extents_of(g, checked_numbers(g, depth, "the depth", 1)).at(0);
    }
    if (node.operand(1)->is_float()) return node.integer_at(1, "the depth");
    const Shape list = node.dims(1, "the depth");
    invalid_if(list.size() != 1, "the depth (input 1) is {} numbers, not one", list.size());
    refuse_if(!list[0].is_symbolic() && (list[0].size() < 1 || list[0].size() > kLargestExtent),
              "the depth (input 1) is {}; 1 to {} are read", list[0].str(), kLargestExtent);
    return list[0];
}

/// on where the index (negative ones count from the end) is the place along the new axis, else off.
Operand one_hot(OpWriter& g, const Node& node) {
    const Operand values = node.operand(2);
    const Dim depth = depth_of(g, node);
    const std::int64_t rank = g.rank(node.x());
    std::int64_t axis = node.integer("axis", -1);
    invalid_if(axis < -rank - 1 || axis > rank, "axis {} is outside the {} dimensions of the result", axis,
               rank + 1);
    axis += axis < 0 ? rank + 1 : 0;
    Operand indices = node.x()->is_float() ? g.cast(node.x(), ElementType::i64) : node.x();
    if (!is_unsigned(indices->type)) {
        const Operand negative = g.op("lesser", {indices, known(0, indices->type)});
        indices = g.op("where", {negative, g.plus(indices, Item(depth)), indices});
    }
    Shape wide = g.shape(indices);
    wide.insert(wide.begin() + axis, 1);
    Operand places = g.add_axes(g.cast(g.positions(depth), indices->type), rank - axis);
    const Operand off = g.reshape(g.cut(values, 0, 0, 1), {}), on = g.reshape(g.cut(values, 0, 1, 1), {});
    return g.op("where", {g.op("equal", {g.reshape(indices, wide), places}), on, off});
}

}  // namespace

std::span<const Operator> constants_operators() {
    static const Operator kOperators[] = {
        {"Compress", 9, compress, "2 -> 1, axis int"},
        {"Constant", 1, constant,
         "0 -> 1, value tensor; 11: 0 -> 1, sparse_value sparse, value tensor; 12: 0 -> 1, sparse_value "
         "sparse, value tensor, value_float float, value_floats floats, value_int int, value_ints ints, "
         "value_string string, value_strings strings"},
        {"ConstantOfShape", 9, constant_of_shape, "1 -> 1, value tensor"},
        {"EyeLike", 9, eye_like, "1 -> 1, dtype int, k int"},
        {"OneHot", 9, one_hot, "3 -> 1, axis int"},
        {"Range", 11, range, "3 -> 1; 27: 3 -> 1, stash_type int"},
        {"Range", 1, range, "2..3 -> 1", kMicrosoft},
        {"Shape", 1, shape_of, "1 -> 1; 15: 1 -> 1, end int, start int"},
        {"Size", 1, size_of, "1 -> 1"},
    };
    return kOperators;
}

}  // namespace headrace::onnx
