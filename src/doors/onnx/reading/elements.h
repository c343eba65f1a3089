#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "doors/onnx/model/element_type.h"
#include "ir/attr.h"
#include "ir/graph.h"

namespace headrace::onnx {

struct OperandData;
/// A value of the graph in the making; null where an optional one is left out. Compared by identity.
using Operand = std::shared_ptr<OperandData>;
class OpWriter;

/// The nearest integer towards zero: a float beyond those becomes the first or last one, and NaN 0.
std::int64_t integer_of(const Number& number);

/// An element that is known, but no number: an extent, a quotient of two (of floats), or one of a list with
/// others that a run tells (`told`), of which nothing can be asked.
struct Item {
    Item(Dim number = 0) : above(std::move(number)) {}
    Item(std::int64_t number) : above(number) {}
    Item(int number) : above(number) {}
    Item(Dim over, Dim under) : above(std::move(over)), below(std::move(under)) {}
    static Item of_run(Operand operand) {
        Item item;
        item.told = std::move(operand);
        return item;
    }

    Dim above, below = 1;  ///< above / below, where below is more than 0
    Operand told;

    bool is_whole() const { return !told && below.is(1); }
    bool is_number() const { return !told && !above.is_symbolic() && !below.is_symbolic(); }
    std::string str() const;
};

/// Elements that are known when the model is read: numbers, or items of which some are none.
struct Elements {
    std::vector<std::int64_t> shape;
    std::shared_ptr<const Constant> data;  ///< numbers, as graphs store the type; null: `items` has them
    std::vector<Item> items;

    bool are_numbers() const { return data != nullptr; }
    std::int64_t count() const;
};

/// A value of the graph in the making: at run time, or of known elements, which become a constant when an op
/// needs them.
struct OperandData {
    ElementType type = ElementType::f32;
    ValueId id = kNoValue;     ///< in `home`
    OpWriter* home = nullptr;  ///< whose value it is
    std::optional<Elements> known;
    bool is_counted = false;     ///< its bytes are in the budget
    std::optional<double> fill;  ///< what all elements are, where their number is open

    bool is_known() const { return known.has_value(); }
    /// Whether its elements are numbers, all known.
    bool has_numbers() const { return known && known->are_numbers(); }
    /// Whether it has items that only a run tells, or is a value at run time.
    bool is_told() const;
    bool is_float() const { return onnx::is_float(type); }
    /// Element i of known numbers.
    Number number(std::int64_t i) const;
    std::int64_t integer(std::int64_t i) const { return integer_of(number(i)); }
    double real(std::int64_t i) const { return number_as<double>(number(i)); }
    /// Element i of known elements.
    Item item(std::int64_t i) const;
};

/// Operands of known elements.
Operand known(Elements elements, ElementType type);
/// A scalar.
Operand known(std::int64_t number, ElementType type);
Operand known(int number, ElementType type);
Operand known(double number, ElementType type);
/// A list.
Operand known(const std::vector<std::int64_t>& numbers, ElementType type = ElementType::i64);
Operand known(const std::vector<double>& numbers, ElementType type);
/// Items; where all are numbers they become such.
Operand known(std::vector<Item> items, std::vector<std::int64_t> shape, ElementType type);
Operand known(const Shape& extents);

/// Element i of numbers as a graph stores them, and the other way, where floats become integers as above.
Number number_at(DType type, const std::byte* data, std::int64_t i);
void put_number(DType type, std::byte* data, std::int64_t i, const Number& number);

}  // namespace headrace::onnx
