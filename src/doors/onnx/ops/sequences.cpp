#include <algorithm>

#include "doors/onnx/ops/sequence_places.h"
#include "doors/onnx/reading/operators.h"

/// Sequences of tensors.
namespace headrace::onnx {
namespace {

Value list_in(const Node& node) {
    const Value x = node.value(0);
    invalid_if(!is_list(x), "input 0 is no sequence, but {}", is_missing(x) ? "missing" : kind_of(x));
    return x;
}

Value sequence_construct(OpWriter& g, const Node& node) {
    std::vector<Operand> items;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) items.push_back(node.operand(i));
    return counted_sequence(g, std::move(items), ElementType::f32);
}

Value sequence_empty(OpWriter& /*g*/, const Node& node) {
    return sequence_of({}, type_named(node.integer("dtype", 1), "dtype"));
}

Value sequence_at(OpWriter& g, const Node& node) { return item_at(g, list_in(node), node.operand(1)); }

Value sequence_insert(OpWriter& g, const Node& node) {
    return inserted(g, list_in(node), node.operand(1), node.optional(2));
}

Value sequence_erase(OpWriter& g, const Node& node) { return erased(g, list_in(node), node.optional(1)); }

Value sequence_length(OpWriter& g, const Node& node) {
    return known({Item(length_of(g, list_in(node)))}, {}, ElementType::i64);
}

Value concat_from_sequence(OpWriter& g, const Node& node) {
    return joined(g, list_in(node), node.integer("axis", 0), node.flag("new_axis", false));
}

// --- SplitToSequence: parts of a size, the last perhaps smaller; of sizes; or single slices

Shape without(Shape shape, int axis) {
    shape.erase(shape.begin() + axis);
    return shape;
}

/// Parts of these sizes, one behind the other.
Value cut_apart(OpWriter& g, const Operand& x, int axis, const std::vector<std::int64_t>& sizes) {
    std::vector<Operand> items;
    std::int64_t begin = 0;
    for (const std::int64_t size : sizes) {
        items.push_back(g.cut(x, axis, begin, size));
        begin += size;
    }
    return counted_sequence(g, std::move(items), x->type);
}

/// How large the parts are that a scalar or a list asks for, of a known extent.
std::vector<std::int64_t> sizes_of(OpWriter& g, const Operand& parts, std::int64_t extent) {
    std::vector<std::int64_t> sizes;
    if (g.rank(parts) == 0) {
        const std::int64_t size = parts->integer(0);
        invalid_if(size < 1, "the parts have the size {}; it is at least 1", size);
        g.budget().items(static_cast<std::size_t>((extent - 1) / size));  // before there is a list of them
        for (std::int64_t begin = 0; begin < extent; begin += std::min(size, extent - begin))
            sizes.push_back(std::min(size, extent - begin));
        return sizes;
    }
    std::int64_t left = extent;
    for (std::int64_t i = 0; i < parts->known->count(); ++i) {
        const std::int64_t size = parts->integer(i);
        invalid_if(size < 0 || size > left, "a part of {} is cut from an extent of {}, of which {} are left",
                   size, extent, left);
        sizes.push_back(size);
        left -= size;
    }
    invalid_if(left != 0, "the parts do not add up to the input's extent of {}; {} are left", extent, left);
    return sizes;
}

/// [count, dimensions]: the shapes of parts of these sizes, perhaps without the axis.
Operand rows_of(OpWriter& g, const Shape& whole, int axis, const Numbers& sizes, const Dim& count,
                bool keeps) {
    std::vector<Operand> columns;
    for (int i = 0; i < static_cast<int>(whole.size()); ++i) {
        const Operand extent = known({Item(whole[static_cast<std::size_t>(i)])}, {}, ElementType::i64);
        if (i != axis)
            columns.push_back(g.expand(extent, {count, 1}));
        else if (keeps)
            columns.push_back(g.reshape(sizes.x(), {count, 1}));
    }
    return columns.empty() ? g.filled(0, ElementType::i64, {count, 0}) : g.concat(columns, 1);
}

/// Parts whose number is known only at run time.
Table told_parts(OpWriter& g, const Operand& x, int axis, const Numbers& given, const Dim& count,
                 bool keeps = true) {
    const Shape whole = g.shape(x);
    const auto at = static_cast<std::size_t>(axis);
    const std::span<const Dim> all(whole);
    const Numbers sizes = given.shaped({count}), extent(g, Shape{whole.at(at)});
    const Numbers after(g, Shape{product_of(all.subspan(at + 1))});
    const Numbers slice(g, Shape{product_of(all.first(at)) * product_of(all.subspan(at + 1))});
    const Owners owners = owners_of(sizes * slice, product_of(whole));
    // The place in [before, extent, after] of an element of a part [before, size, after].
    const Numbers size = sizes.at(owners.tensor), begin = begins_of(sizes).at(owners.tensor);
    const Numbers row = owners.place.divided(after);
    const Numbers places =
        (row.divided(size) * extent + begin + row.rest(size)) * after + owners.place.rest(after);
    const Operand flat = g.op("gather", {flattened(g, x), places.x()}, {{"axis", 0}});
    return {flat, rows_of(g, whole, axis, sizes, count, keeps), nullptr, {}};
}

/// Parts of one element along an axis whose extent is open.
Value told_slices(OpWriter& g, const Operand& x, int axis, bool keeps) {
    const Shape whole = g.shape(x);
    const Dim count = whole.at(static_cast<std::size_t>(axis));
    Table table = told_parts(g, x, axis, Numbers(g, g.filled(1, ElementType::i64, {count})), count, keeps);
    Shape common = without(whole, axis);
    if (keeps) common.insert(common.begin() + axis, 1);
    table.common.assign(common.begin(), common.end());
    return value_of(std::move(table));
}

Value slices(OpWriter& g, const Operand& x, int axis, bool keeps) {
    const Shape whole = g.shape(x);
    const Dim& extent = whole.at(static_cast<std::size_t>(axis));
    if (extent.is_symbolic()) return told_slices(g, x, axis, keeps);
    std::vector<Operand> items;
    for (std::int64_t i = 0; i < extent.size(); ++i) {
        const Operand item = g.cut(x, axis, i, 1);
        items.push_back(keeps ? item : g.reshape(item, without(whole, axis)));
    }
    return counted_sequence(g, std::move(items), x->type);
}

bool is_one(const Operand& x) {
    if (!is_known(x)) return false;
    const Item item = x->item(0);
    return item.is_number() && item.is_whole() && item.above.is(1);
}

Value split_to_sequence(OpWriter& g, const Node& node) {
    const Operand x = node.x(), parts = node.optional(1);
    const int axis = g.axis(x, node.integer("axis", 0));
    const Shape whole = g.shape(x);
    invalid_if(whole.empty(), "the input is a scalar");
    if (!parts) return slices(g, x, axis, node.flag("keepdims", true));
    const int rank = g.rank(parts);
    invalid_if(rank > 1, "the sizes of the parts (input 1) have {} dimensions; they are a number or a list",
               rank);
    const Dim extent = whole[static_cast<std::size_t>(axis)];
    if (parts->has_numbers() && !extent.is_symbolic())
        return cut_apart(g, x, axis, sizes_of(g, parts, extent.size()));
    const Dim count = rank == 1 ? g.shape(parts)[0] : Dim(1);
    if (rank == 1 && parts->fill == 1.0) {  // PyTorch's repeat_interleave
        Shape same = without(whole, axis);
        same.insert(same.begin() + axis, count);
        return told_slices(g, g.op("reshape", {x}, {{"new_shape", same}}), axis, true);
    }
    if (rank == 1) return value_of(told_parts(g, x, axis, Numbers(g, parts), count));
    if (is_one(parts)) return told_slices(g, x, axis, true);
    const Numbers whole_size(g, Shape{extent}), size(g, parts);
    const Dim number = (whole_size + size - 1).divided(size).extents().at(0);
    const Numbers places = Numbers(g, g.positions(number)) * size;
    return value_of(told_parts(g, x, axis, (whole_size - places).at_most(size), number));
}

}  // namespace

std::span<const Operator> sequences_operators() {
    static const Operator kOperators[] = {
        {"ConcatFromSequence", 11, concat_from_sequence, "1 -> 1, axis int, new_axis int"},
        {"SequenceAt", 11, sequence_at, "2 -> 1"},
        {"SequenceConstruct", 11, sequence_construct, "1.. -> 1"},
        {"SequenceEmpty", 11, sequence_empty, "0 -> 1, dtype int"},
        {"SequenceErase", 11, sequence_erase, "1..2 -> 1"},
        {"SequenceInsert", 11, sequence_insert, "2..3 -> 1"},
        {"SequenceLength", 11, sequence_length, "1 -> 1"},
        {"SplitToSequence", 11, split_to_sequence, "1..2 -> 1, axis int, keepdims int"},
    };
    return kOperators;
}

}  // namespace headrace::onnx
