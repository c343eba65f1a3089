#include "doors/onnx/reading/tables.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace headrace::onnx {
namespace {

/// [rows, columns] of extents.
Operand matrix(std::vector<Item> items, std::size_t rows, int columns) {
    return known(std::move(items), {static_cast<std::int64_t>(rows), columns}, ElementType::i64);
}

int dimensions_in(const OpWriter& g, const Table& table) {
    return static_cast<int>(g.fixed(g.shape(table.shapes).at(1), "the number of dimensions of its tensors"));
}

/// Lists without tensors have no elements and no shapes.
Table empty_table(int rank, ElementType element) {
    return {known(std::vector<Item>(), {0}, element), matrix({}, 0, rank), nullptr, {}};
}

/// A stand-in for what is not there, in the form of what might be, which is g's.
Value stand_in(const OpWriter& g, const Value& of) {
    if (const Sequence* sequence = as_sequence(of)) return sequence_of({}, sequence->element);
    if (const Table* table = as_table(of)) return value_of(empty_table(*rank_of(g, of), table->flat->type));
    const Operand& x = std::get<Operand>(of);
    const auto rank = static_cast<std::size_t>(g.rank(x));
    return rank == 0 ? known(0, x->type)
                     : known(std::vector<Item>(), std::vector<std::int64_t>(rank, 0), x->type);
}

}  // namespace

std::optional<int> rank_of(const OpWriter& g, const Value& list) {
    if (const Table* table = as_table(list)) return dimensions_in(g, *table);
    std::optional<int> most;
    for (const Operand& item : as_sequence(list)->items) most = std::max(most.value_or(0), g.rank(item));
    return most;
}

Dim length_of(const OpWriter& g, const Value& list) {
    if (const Table* table = as_table(list)) return g.shape(table->shapes).at(0);
    return static_cast<std::int64_t>(as_sequence(list)->items.size());
}

Operand flattened(OpWriter& g, const Operand& x) { return g.reshape(x, {g.size(x)}); }

Table table_of(OpWriter& g, const Value& list, std::optional<int> rank) {
    if (const Table* table = as_table(list)) return *table;
    const Sequence& sequence = *as_sequence(list);
    std::set<std::string_view> types;
    std::set<int> ranks;
    for (const Operand& item : sequence.items) {
        types.insert(name_of(item->type));
        ranks.insert(g.rank(item));
    }
    if (types.empty()) types.insert(name_of(sequence.element));
    if (ranks.empty() && rank) ranks.insert(*rank);
    refuse_if(types.size() > 1 || ranks.empty(),
              "a sequence of tensors of [{}] is used where its length or a place in it is known only at run "
              "time; its tensors must have one dtype, and the first of them be known",
              fmt::join(types, ", "));
    const int most = *ranks.rbegin();
    if (sequence.items.empty()) return empty_table(most, sequence.element);
    std::vector<Operand> flat;
    std::vector<Item> rows;
    std::vector<std::int64_t> own;
    for (const Operand& item : sequence.items) {
        const Shape sizes = g.shape(item);
        rows.insert(rows.end(), sizes.begin(), sizes.end());
        rows.insert(rows.end(), static_cast<std::size_t>(most) - sizes.size(), Item(1));
        own.push_back(static_cast<std::int64_t>(sizes.size()));
        flat.push_back(flattened(g, item));
    }
    return {g.concat(flat, 0),
            matrix(std::move(rows), sequence.items.size(), most),
            ranks.size() == 1 ? nullptr : known(own),
            {}};
}

Table of_ranks(OpWriter& g, const Table& table, int rank) {
    const Shape sizes = g.shape(table.shapes);
    const int own = dimensions_in(g, table);
    const Operand ranks = table.ranks ? table.ranks : g.expand(known(own, ElementType::i64), {sizes[0]});
    if (own >= rank) return {table.flat, table.shapes, ranks, {}};
    const Operand more = g.filled(1, ElementType::i64, {sizes[0], rank - own});
    return {table.flat, g.concat({table.shapes, more}, 1), ranks, {}};
}

namespace {

/// Optionals, or one and what it might hold.
std::pair<Value, Value> alike_optionals(const ValueOf& one, const ValueOf& other) {
    const auto as_one = [](const Value& x) {
        const Optional* optional = as_optional(x);
        return optional ? *optional : Optional{x, nullptr};
    };
    const Optional a = as_one(one.value), b = as_one(other.value);
    if (!a.item && !b.item) return {optional_of(std::nullopt), optional_of(std::nullopt)};
    const bool is_told = a.is_there || b.is_there || a.item.has_value() != b.item.has_value();
    const auto flag = [&](const Optional& x) {
        return x.is_there || !is_told ? x.is_there : known(x.item ? 1 : 0, ElementType::boolean);
    };
    const Value first = a.item ? *a.item : stand_in(*other.g, *b.item);
    const Value second = b.item ? *b.item : stand_in(*one.g, *a.item);
    const auto items = alike({one.g, first}, {other.g, second});
    return {optional_of(items.first, flag(a)), optional_of(items.second, flag(b))};
}

std::pair<Value, Value> alike_lists(const ValueOf& one, const ValueOf& other) {
    const auto first = rank_of(*one.g, one.value), second = rank_of(*other.g, other.value);
    const int rank = first || second ? std::max(first.value_or(0), second.value_or(0)) : 1;
    Table a = table_of(*one.g, one.value, rank), b = table_of(*other.g, other.value, rank);
    if (a.ranks || b.ranks || dimensions_in(*one.g, a) != dimensions_in(*other.g, b)) {
        a = of_ranks(*one.g, a, rank);
        b = of_ranks(*other.g, b, rank);
    }
    return {value_of(std::move(a)), value_of(std::move(b))};
}

}  // namespace

std::pair<Value, Value> alike(const ValueOf& one, const ValueOf& other) {
    const Value &a = one.value, &b = other.value;
    if (as_optional(a) || as_optional(b)) return alike_optionals(one, other);
    if (is_list(a) && is_list(b)) {
        const bool are_counted = as_sequence(a) && has_same_form(a, b);
        return are_counted ? std::pair(a, b) : alike_lists(one, other);
    }
    refuse_if(!is_tensor(a) || !is_tensor(b),
              "one is {} and the other {}, and which one is known only at run time", kind_of(a), kind_of(b));
    return {a, b};
}

}  // namespace headrace::onnx
