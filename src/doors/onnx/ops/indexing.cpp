#include "doors/onnx/ops/indexing.h"

#include <algorithm>

#include "doors/onnx/reading/numbers.h"

/// Reading at indices.
namespace headrace::onnx {
namespace {

/// Errors: a known index outside its extent.
void check_numbers(const OperandData& indices, const Shape& shape, const std::vector<std::int64_t>& axes) {
    const auto each = static_cast<std::int64_t>(axes.size());
    for (std::int64_t i = 0; i < indices.known->count(); ++i) {
        const std::int64_t axis = axes[static_cast<std::size_t>(i % each)], index = indices.integer(i);
        const std::int64_t extent = shape[static_cast<std::size_t>(axis)].size();
        invalid_if(index < -extent || index >= extent, "index {} is outside the extent {} of axis {}", index,
                   extent, axis);
    }
}

/// What a run needs of an open extent for known indices to lie within it.
std::int64_t least_extent(const OperandData& indices) {
    std::int64_t least = 0;
    for (std::int64_t i = 0; i < indices.known->count(); ++i) {
        const std::int64_t index = indices.integer(i);
        least = std::max(least, index < 0 ? -index : index + 1);
    }
    return least;
}

Operand gather(OpWriter& g, const Node& node) {
    const Operand x = node.x(), indices = as_indices(g, node.operand(1));
    invalid_if(g.rank(x) == 0, "input 0 is a scalar, of which nothing can be taken");
    const int axis = g.axis(x, node.integer("axis", 0));
    const Shape sizes = g.shape(x);
    const Dim& extent = sizes[static_cast<std::size_t>(axis)];
    if (!indices->has_numbers() || indices->known->count() != 1 || extent.is_symbolic())
        return g.op("gather", {x, checked_indices(g, x, indices, {axis})}, {{"axis", axis}});
    check_numbers(*indices, sizes, {axis});
    const std::int64_t index = indices->integer(0);
    const Operand taken = g.cut(x, axis, index < 0 ? index + extent.size() : index, 1);
    Shape wanted(sizes.begin(), sizes.begin() + axis);
    wanted.insert(wanted.end(), indices->known->shape.begin(), indices->known->shape.end());
    wanted.insert(wanted.end(), sizes.begin() + axis + 1, sizes.end());
    return g.reshape(taken, wanted);
}

Operand gather_elements(OpWriter& g, const Node& node) {
    const int axis = g.axis(node.x(), node.integer("axis", 0));
    const Operand indices = checked_indices(g, node.x(), as_indices(g, node.operand(1)), {axis});
    return elements_at(g, node.x(), indices, axis);
}

Operand gather_nd(OpWriter& g, const Node& node) {
    const Operand x = node.x();
    const std::int64_t batch = node.integer("batch_dims", 0);
    const Operand indices = checked_tuples(g, x, as_indices(g, node.operand(1)), batch);
    if (batch == 0) return g.op("gather_nd", {x, indices});
    const Shape shape = g.shape(x), own = g.shape(indices);
    const auto least = static_cast<std::int64_t>(std::min(shape.size(), own.size()));
    invalid_if(batch < 0 || batch >= least, "batch_dims is {}; the inputs have {} and {} dimensions", batch,
               shape.size(), own.size());
    const Dim count = product_of(std::span(shape).first(static_cast<std::size_t>(batch)));
    const auto behind = [&](const Shape& of) {
        Shape merged{count};
        merged.insert(merged.end(), of.begin() + batch, of.end());
        return merged;
    };
    const Operand flat = g.reshape(x, behind(shape)), rows = g.reshape(indices, behind(own));
    const auto inner = static_cast<std::int64_t>(own.size()) - batch;
    Operand number = g.add_axes(g.cast(g.positions(count), indices->type), inner);
    Shape column = behind(own);
    column.back() = 1;
    number = g.expand(number, column);
    const Operand whole = g.concat({number, rows}, g.rank(rows) - 1);
    const Operand y = g.op("gather_nd", {flat, whole});
    const Shape result = g.shape(y);
    Shape wanted(shape.begin(), shape.begin() + batch);
    wanted.insert(wanted.end(), result.begin() + 1, result.end());
    return g.reshape(y, wanted);
}

/// The first `lengths` elements of each sequence backwards.
Operand reverse_sequence(OpWriter& g, const Node& node) {
    const Operand x = node.x();
    const std::int64_t time = node.integer("time_axis", 0), batch = node.integer("batch_axis", 1);
    invalid_if(!((time == 0 && batch == 1) || (time == 1 && batch == 0)),
               "time_axis is {} and batch_axis {}; one is 0, the other 1", time, batch);
    const Shape sizes = g.shape(x);
    invalid_if(sizes.size() < 2, "the input has {} dimensions; 2 are the least", sizes.size());
    const auto at = static_cast<std::size_t>(time);
    Operand lengths = checked_numbers(g, g.cast(node.operand(1), ElementType::i64),
                                      "the length of a sequence", 0, sizes[at]);
    Shape grid{1, 1}, column{1, 1};
    grid[at] = sizes[at];
    column[static_cast<std::size_t>(batch)] = sizes[static_cast<std::size_t>(batch)];
    const Operand place = g.reshape(g.positions(sizes[at]), grid);
    lengths = g.reshape(lengths, column);
    const Operand mirrored = g.plus(g.op("sub", {lengths, place}), -1.0);
    Operand source = g.op("where", {g.op("lesser", {place, lengths}), mirrored, place});
    source = g.add_axes(source, static_cast<std::int64_t>(sizes.size()) - 2);
    return g.op("gather_elements", {x, g.expand(source, sizes)}, {{"axis", time}});
}

}  // namespace

Operand as_indices(OpWriter& g, const Operand& x) {
    const bool fits =
        x->type == ElementType::i32 || x->type == ElementType::i64 || x->type == ElementType::u32;
    return fits ? x : g.cast(x, ElementType::i64);
}

Operand checked_indices(OpWriter& g, const Operand& x, const Operand& indices,
                        const std::vector<std::int64_t>& axes) {
    if (indices->is_known() && !indices->has_numbers()) return indices;
    const Shape shape = g.shape(x);
    Shape extents;
    for (std::int64_t axis : axes) extents.push_back(shape.at(static_cast<std::size_t>(axis)));
    if (indices->is_known() && !is_open(extents)) {
        check_numbers(*indices, shape, axes);
        return indices;
    }
    if (indices->is_known() && axes.size() == 1 && indices->known->count() > 0)
        g.ranges().needs(extents[0], least_extent(*indices));
    return g.op("checked_indices", {indices}, {{"extents", extents}});
}

Operand elements_at(OpWriter& g, const Operand& x, const Operand& indices, int axis) {
    Operand part = x;
    const Shape sizes = g.shape(indices);
    for (int i = 0; i < static_cast<int>(sizes.size()) && i < g.rank(x); ++i)
        if (i != axis && !sizes[static_cast<std::size_t>(i)].is_symbolic())
            part = g.cut(part, i, 0, sizes[static_cast<std::size_t>(i)]);
    return g.op("gather_elements", {part, indices}, {{"axis", axis}});
}

Operand checked_tuples(OpWriter& g, const Operand& x, const Operand& indices, std::int64_t batch) {
    const Shape own = g.shape(indices);
    const Dim depth = own.empty() ? Dim(0) : own.back();
    const bool fits =
        !depth.is_symbolic() && depth.size() > 0 && depth.size() <= g.rank(x) - batch && batch >= 0;
    if (!fits) return indices;  // the op says what is wrong with it
    std::vector<std::int64_t> axes = counted_list(depth.size());
    for (std::int64_t& axis : axes) axis += batch;
    return checked_indices(g, x, indices, axes);
}

Shape row_major(const Shape& shape) {
    Shape steps(shape.size(), 1);
    for (std::size_t i = shape.size(); i-- > 1;) steps[i - 1] = steps[i] * shape[i];
    return steps;
}

std::span<const Operator> indexing_operators() {
    static const Operator kOperators[] = {
        {"Gather", 1, gather, "2 -> 1, axis int"},
        {"GatherElements", 11, gather_elements, "2 -> 1, axis int"},
        {"GatherND", 11, gather_nd, "2 -> 1; 12: 2 -> 1, batch_dims int"},
        {"GatherND", 1, gather_nd, "2 -> 1", kMicrosoft},
        {"ReverseSequence", 10, reverse_sequence, "2 -> 1, batch_axis int, time_axis int"},
    };
    return kOperators;
}

}  // namespace headrace::onnx
