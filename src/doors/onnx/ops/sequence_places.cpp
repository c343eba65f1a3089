#include "doors/onnx/ops/sequence_places.h"

#include <algorithm>

namespace headrace::onnx {
namespace {

void check_one_rank(const Table& table) {
    refuse_if(
        table.ranks != nullptr,
        "the sequence has tensors of several numbers of dimensions, and which one is taken is known only "
        "at run time");
}

/// A place that is a number, counted from the front.
std::int64_t place_of(const Operand& at, std::size_t places, std::size_t length) {
    invalid_if(at->known->count() != 1, "the position has {} elements, not one", at->known->count());
    const std::int64_t number = at->integer(0), count = static_cast<std::int64_t>(places);
    invalid_if(number < -static_cast<std::int64_t>(length) || number >= count,
               "position {} is outside the sequence of {} tensors", number, length);
    return number < 0 ? number + static_cast<std::int64_t>(length) : number;
}

/// A place of i64[1], negative ones counted from the end.
Numbers told_place(OpWriter& g, const Operand& at, const Dim& count) {
    const Operand list = g.reshape(g.cast(at, ElementType::i64), {1});
    const Numbers checked(g, g.op("checked_indices", {list}, {{"extents", Shape{count}}}));
    return (checked < 0).choose(checked + Numbers(g, Shape{count}), checked);
}

/// The list's numbers at these places. A 0 behind it allows an empty list where there are no places.
Numbers looked_up(const Numbers& list, const Numbers& places) {
    OpWriter& g = list.g();
    const Operand more = known(std::vector<std::int64_t>{0});
    return Numbers(g, g.concat({list.x(), more}, 0)).at(places);
}

Numbers sizes_of(OpWriter& g, const Table& table) { return Numbers(g, table.shapes).reduced("product", 1); }

/// The tensors of these numbers, which have so many elements together.
Value reordered(OpWriter& g, const Table& table, const Numbers& order, const Dim& total) {
    const Numbers sizes = sizes_of(g, table);
    const Owners owners = owners_of(sizes.at(order), total);
    const Numbers places = looked_up(begins_of(sizes).at(order), owners.tensor) + owners.place;
    const auto taken = [&](const Operand& x, const Numbers& which) {
        return g.op("gather", {x, which.x()}, {{"axis", 0}});
    };
    return value_of({taken(table.flat, places),
                     taken(table.shapes, order),
                     table.ranks ? taken(table.ranks, order) : nullptr,
                     {}});
}

/// A table with one more tensor at the end.
Table longer(OpWriter& g, Table table, const Operand& tensor) {
    const int own = g.rank(tensor);
    const auto rank_in = [&] { return *rank_of(g, value_of(table)); };
    if (table.ranks || rank_in() != own) table = of_ranks(g, table, std::max(rank_in(), own));
    const Shape sizes = g.shape(tensor);
    std::vector<Item> row(sizes.begin(), sizes.end());
    row.resize(static_cast<std::size_t>(rank_in()), Item(1));
    const Operand last = known(std::move(row), {1, rank_in()}, ElementType::i64);
    if (table.ranks) table.ranks = g.concat({table.ranks, known(std::vector<std::int64_t>{own})}, 0);
    return {
        g.concat({table.flat, flattened(g, tensor)}, 0), g.concat({table.shapes, last}, 0), table.ranks, {}};
}

}  // namespace

Value counted_sequence(OpWriter& g, std::vector<Operand> items, ElementType element) {
    g.budget().items(items.size());
    return sequence_of(std::move(items), element);
}

Owners owners_of(const Numbers& sizes, const Dim& total) {
    OpWriter& g = sizes.g();
    const Numbers ends(g, g.op("cumulative_sum", {sizes.x()}, {{"axis", 0}}));
    const Numbers places(g, g.positions(total));
    const Numbers tensor = (places.shaped({total, 1}) >= ends).choose(1, 0).reduced("sum", 1);
    return {tensor, places - looked_up(ends - sizes, tensor)};
}

Numbers begins_of(const Numbers& sizes) {
    OpWriter& g = sizes.g();
    return {g, g.op("cumulative_sum", {sizes.x()}, {{"axis", 0}, {"exclusive", true}})};
}

Operand item_at(OpWriter& g, const Value& list, const Operand& at) {
    const Sequence* sequence = as_sequence(list);
    if (sequence && at->has_numbers()) {
        const std::size_t count = sequence->items.size();
        return sequence->items[static_cast<std::size_t>(place_of(at, count, count))];
    }
    const Table table = table_of(g, list);
    check_one_rank(table);
    const int rank = *rank_of(g, value_of(table));
    const Dim count = g.shape(table.shapes)[0];
    const Numbers place = told_place(g, at, count);
    const Numbers begin = begins_of(sizes_of(g, table)).at(place);
    const Operand row = g.op("gather", {table.shapes, place.x()}, {{"axis", 0}});
    std::vector<std::optional<Item>> common(table.common.begin(), table.common.end());
    common.resize(static_cast<std::size_t>(rank));
    const Shape shape = extents_among(g, Numbers(g, g.reshape(row, {rank})), common);
    const Numbers places = Numbers(g, g.positions(product_of(shape))) + begin;
    return g.reshape(g.op("gather", {table.flat, places.x()}, {{"axis", 0}}), shape);
}

Value inserted(OpWriter& g, const Value& list, const Operand& tensor, const Operand& at) {
    const Sequence* sequence = as_sequence(list);
    if (sequence && (!at || at->has_numbers())) {
        std::vector<Operand> items = sequence->items;
        const std::size_t count = items.size();
        const auto place = at ? place_of(at, count + 1, count) : static_cast<std::int64_t>(count);
        items.insert(items.begin() + place, tensor);
        return counted_sequence(g, std::move(items), tensor->type);
    }
    const Table table = table_of(g, list, g.rank(tensor));
    invalid_if(table.flat->type != tensor->type, "a tensor of {} is inserted into a sequence of {}",
               name_of(tensor->type), name_of(table.flat->type));
    const Table made = longer(g, table, tensor);
    if (!at) return value_of(made);
    const Dim count = g.shape(table.shapes)[0];
    const Numbers length(g, Shape{count}), told(g, g.reshape(g.cast(at, ElementType::i64), {1}));
    const Numbers place =
        (told < 0).choose(told + length, told).checked("the place of a tensor in a sequence", 0, count);
    const Numbers numbers(g, g.positions(count + 1));
    const Numbers behind = numbers.equals(place).choose(length, numbers - 1);
    return reordered(g, made, (numbers < place).choose(numbers, behind), g.shape(made.flat)[0]);
}

Value erased(OpWriter& g, const Value& list, const Operand& at) {
    const Sequence* sequence = as_sequence(list);
    if (sequence && (!at || at->has_numbers())) {
        std::vector<Operand> items = sequence->items;
        invalid_if(items.empty(), "the sequence is empty");
        const std::size_t count = items.size();
        items.erase(items.begin() + (at ? place_of(at, count, count) : static_cast<std::int64_t>(count) - 1));
        return counted_sequence(g, std::move(items), sequence->element);
    }
    const Table table = table_of(g, list);
    const Dim count = g.shape(table.shapes)[0];
    const Operand which = at ? at : g.at_run_time(Item(count - 1), ElementType::i64);
    const Numbers place = told_place(g, which, count);
    const Numbers numbers(g, g.positions(g.at_least_0(count - 1)));
    const Numbers order = (numbers < place).choose(numbers, numbers + 1);
    return reordered(g, table, order, sizes_of(g, table).at(order).reduced("sum").extents().at(0));
}

namespace {

std::int64_t axis_among(std::int64_t axis, std::int64_t rank) {
    invalid_if(axis < -rank || axis >= rank, "axis {} is outside the {} dimensions of the result", axis,
               rank);
    return axis < 0 ? axis + rank : axis;
}

Operand joined_items(OpWriter& g, std::vector<Operand> items, std::int64_t axis, bool is_new) {
    invalid_if(items.empty(), "the sequence is empty");
    const std::int64_t rank = g.rank(items[0]);
    axis = axis_among(axis, rank + (is_new ? 1 : 0));
    for (Operand& item : items) {
        invalid_if(g.rank(item) != rank,
                   "its tensors have {} and {} dimensions; they are joined with one number", rank,
                   g.rank(item));
        if (!is_new) continue;
        Shape sizes = g.shape(item);
        sizes.insert(sizes.begin() + axis, 1);
        item = g.reshape(item, sizes);
    }
    return g.concat(items, static_cast<int>(axis));
}

}  // namespace

Operand joined(OpWriter& g, const Value& list, std::int64_t axis, bool is_new) {
    if (const Sequence* sequence = as_sequence(list)) return joined_items(g, sequence->items, axis, is_new);
    const Table& table = *as_table(list);
    check_one_rank(table);
    const int rank = *rank_of(g, list);
    axis = axis_among(axis, rank + (is_new ? 1 : 0));
    const Dim count = length_of(g, list);
    const Operand row = g.op("gather", {table.shapes, known(std::vector<std::int64_t>{0})}, {{"axis", 0}});
    Shape shape = extents_of(g, g.reshape(row, {rank}));
    if (is_new) {
        shape.insert(shape.begin(), count);
        std::vector<std::int64_t> order = counted_list(rank + 1);
        std::rotate(order.begin(), order.begin() + 1, order.begin() + axis + 1);
        return g.transpose(g.reshape(table.flat, shape), order);
    }
    refuse_if(axis != 0,
              "tensors of a sequence of unknown length are joined along another axis than the first");
    const Numbers rows(g, g.reshape(g.cut(table.shapes, 1, 0, 1), {count}));
    shape[0] = rows.reduced("sum").extents().at(0);
    return g.reshape(table.flat, shape);
}

}  // namespace headrace::onnx
