#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "doors/onnx/reading/elements.h"

/// Sequences and optionals, which the graph knows as tensors. A sequence whose length is known is a list of
/// operands. Any other, whose tensors are of one type, is a table: all elements one after the other, and the
/// shapes, a row each.
namespace headrace::onnx {

struct Sequence;
struct Table;
struct Optional;
/// What a name of a model means; a null operand where an input is left out.
using Value = std::variant<Operand, std::shared_ptr<const Sequence>, std::shared_ptr<const Table>,
                           std::shared_ptr<const Optional>>;
using Values = std::vector<Value>;

struct Sequence {
    std::vector<Operand> items;
    ElementType element = ElementType::f32;  ///< where there are no items to tell
};

/// A sequence of a length that a run tells.
struct Table {
    Operand flat;    ///< all elements
    Operand shapes;  ///< [length, dimensions], i64
    /// How many of the dimensions each tensor has, i64[length]; the others are 1. Null where all have all.
    Operand ranks;
    /// Extents that all tensors have, where something of them is known: empty, or one for each dimension.
    std::vector<std::optional<Dim>> common;
};

struct Optional {
    std::optional<Value> item;  ///< none where it is empty
    Operand is_there;           ///< a truth value where only a run knows; else null
};

Value sequence_of(std::vector<Operand> items, ElementType element);
Value value_of(Table table);
Value optional_of(std::optional<Value> item, Operand is_there = nullptr);

bool is_tensor(const Value& x);
/// A sequence or a table.
bool is_list(const Value& x);
bool is_missing(const Value& x);
/// Null for what is no table; likewise for the others.
const Table* as_table(const Value& x);
const Sequence* as_sequence(const Value& x);
const Optional* as_optional(const Value& x);
/// "a tensor", "a sequence" or "an optional".
std::string_view kind_of(const Value& x);
/// Throws Invalid where one is no tensor: "result 2 of its body is a sequence; it must be a tensor".
std::vector<Operand> tensors_of(std::span<const Value> values, std::string_view what);
Values values_of(std::span<const Operand> operands);

/// The operands that a value consists of.
std::vector<Operand> leaves_of(const Value& x);
std::vector<Operand> leaves_of(const Values& values);
/// A value like that of so many other operands.
Value with_leaves(const Value& like, std::span<const Operand> operands);
/// Values like those of so many operands each.
Values grouped(const Values& like, std::span<const Operand> operands);
/// Whether they consist of as many operands in the same way.
bool has_same_form(const Value& a, const Value& b);

}  // namespace headrace::onnx
