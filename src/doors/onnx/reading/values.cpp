#include "doors/onnx/reading/values.h"

#include <algorithm>

#include "doors/onnx/reading/refused.h"

namespace headrace::onnx {

Value sequence_of(std::vector<Operand> items, ElementType element) {
    if (!items.empty()) element = items[0]->type;
    return std::make_shared<const Sequence>(Sequence{std::move(items), element});
}

Value value_of(Table table) { return std::make_shared<const Table>(std::move(table)); }

Value optional_of(std::optional<Value> item, Operand is_there) {
    return std::make_shared<const Optional>(Optional{std::move(item), std::move(is_there)});
}

namespace {

/// What a pointer of the variant shows.
template <class T>
const T* pointed_to(const Value& x) {
    const auto* found = std::get_if<std::shared_ptr<const T>>(&x);
    return found == nullptr ? nullptr : found->get();
}

}  // namespace

bool is_tensor(const Value& x) { return std::holds_alternative<Operand>(x); }
bool is_list(const Value& x) { return as_sequence(x) != nullptr || as_table(x) != nullptr; }
bool is_missing(const Value& x) { return is_tensor(x) && !std::get<Operand>(x); }
const Sequence* as_sequence(const Value& x) { return pointed_to<Sequence>(x); }
const Table* as_table(const Value& x) { return pointed_to<Table>(x); }
const Optional* as_optional(const Value& x) { return pointed_to<Optional>(x); }

std::string_view kind_of(const Value& x) {
    if (is_tensor(x)) return "a tensor";
    return is_list(x) ? "a sequence" : "an optional";
}

std::vector<Operand> tensors_of(std::span<const Value> values, std::string_view what) {
    std::vector<Operand> operands;
    for (std::size_t i = 0; i < values.size(); ++i) {
        invalid_if(!is_tensor(values[i]), "{} {} is {}; it must be a tensor", what, i, kind_of(values[i]));
        operands.push_back(std::get<Operand>(values[i]));
    }
    return operands;
}

Values values_of(std::span<const Operand> operands) { return {operands.begin(), operands.end()}; }

std::vector<Operand> leaves_of(const Value& x) {
    if (const Sequence* sequence = as_sequence(x)) return sequence->items;
    if (const Table* table = as_table(x)) {
        std::vector<Operand> parts{table->flat, table->shapes};
        if (table->ranks) parts.push_back(table->ranks);
        return parts;
    }
    if (const Optional* optional = as_optional(x)) {
        std::vector<Operand> parts;
        if (optional->item) parts = leaves_of(*optional->item);
        if (optional->is_there) parts.insert(parts.begin(), optional->is_there);
        return parts;
    }
    return {std::get<Operand>(x)};
}

std::vector<Operand> leaves_of(const Values& values) {
    std::vector<Operand> all;
    for (const Value& x : values) {
        const std::vector<Operand> own = leaves_of(x);
        all.insert(all.end(), own.begin(), own.end());
    }
    return all;
}

Value with_leaves(const Value& like, std::span<const Operand> operands) {
    if (const Sequence* sequence = as_sequence(like))
        return sequence_of({operands.begin(), operands.end()}, sequence->element);
    if (const Table* table = as_table(like))
        return value_of({operands[0], operands[1], table->ranks ? operands[2] : nullptr, {}});
    if (const Optional* optional = as_optional(like)) {
        const Operand is_there = optional->is_there ? operands[0] : nullptr;
        if (!optional->item) return optional_of(std::nullopt, is_there);
        return optional_of(with_leaves(*optional->item, operands.subspan(is_there ? 1 : 0)), is_there);
    }
    return operands[0];
}

Values grouped(const Values& like, std::span<const Operand> operands) {
    Values values;
    for (const Value& x : like) {
        const std::size_t count = leaves_of(x).size();
        values.push_back(with_leaves(x, operands.first(count)));
        operands = operands.subspan(count);
    }
    return values;
}

bool has_same_form(const Value& a, const Value& b) {
    if (a.index() != b.index()) return false;
    if (const Sequence* sequence = as_sequence(a))
        return sequence->items.size() == as_sequence(b)->items.size();
    if (const Table* table = as_table(a)) return (table->ranks == nullptr) == (as_table(b)->ranks == nullptr);
    if (const Optional* optional = as_optional(a)) {
        const Optional& other = *as_optional(b);
        if ((optional->is_there == nullptr) != (other.is_there == nullptr) ||
            optional->item.has_value() != other.item.has_value())
            return false;
        return !optional->item || has_same_form(*optional->item, *other.item);
    }
    return true;
}

}  // namespace headrace::onnx
