#pragma once
#include <string>
#include <vector>

#include "doors/onnx/reading/node.h"
#include "doors/onnx/reading/op_writer.h"

namespace headrace::onnx {

/// Integers that are known only at run time: arithmetic of extents and places, and what becomes extents. A
/// small tensor of i64; each operation is an op of the graph.
class Numbers {
public:
    Numbers(OpWriter& g, const Operand& x);
    Numbers(OpWriter& g, const Shape& extents);
    Numbers(OpWriter& g, const std::vector<std::int64_t>& list);
    Numbers(OpWriter& g, std::int64_t number);

    const Operand& x() const { return x_; }
    OpWriter& g() const { return *g_; }

    Numbers operator+(const Numbers& other) const { return op("add", other); }
    Numbers operator-(const Numbers& other) const { return op("sub", other); }
    Numbers operator*(const Numbers& other) const { return op("mul", other); }
    Numbers operator+(std::int64_t other) const { return *this + Numbers(*g_, other); }
    Numbers operator-(std::int64_t other) const { return *this - Numbers(*g_, other); }
    Numbers operator*(std::int64_t other) const { return *this * Numbers(*g_, other); }
    friend Numbers operator-(std::int64_t number, const Numbers& other) {
        return Numbers(*other.g_, number) - other;
    }
    /// The quotients of numbers that are not negative; a division by 0 gives 0.
    Numbers divided(const Numbers& other) const { return op("div", other); }
    /// The remainders, with the divisor's sign.
    Numbers rest(const Numbers& other) const { return op("remainder", other); }

    Numbers operator<(const Numbers& other) const { return op("lesser", other); }
    Numbers operator>(const Numbers& other) const { return op("greater", other); }
    Numbers operator>=(const Numbers& other) const { return op("greater_or_equal", other); }
    Numbers operator<(std::int64_t other) const { return *this < Numbers(*g_, other); }
    Numbers operator>(std::int64_t other) const { return *this > Numbers(*g_, other); }
    Numbers operator>=(std::int64_t other) const { return *this >= Numbers(*g_, other); }
    Numbers equals(const Numbers& other) const { return op("equal", other); }
    Numbers equals(std::int64_t other) const { return equals(Numbers(*g_, other)); }
    Numbers both(const Numbers& other) const { return op("logical_and", other); }
    Numbers either(const Numbers& other) const { return op("logical_or", other); }
    Numbers at_least(const Numbers& other) const { return op("max", other); }
    Numbers at_least(std::int64_t other) const { return at_least(Numbers(*g_, other)); }
    Numbers at_most(const Numbers& other) const { return op("min", other); }
    Numbers at_most(std::int64_t other) const { return at_most(Numbers(*g_, other)); }
    /// These numbers are truth values, which choose between the others.
    Numbers choose(const Numbers& yes, const Numbers& no) const;
    Numbers choose(std::int64_t yes, const Numbers& no) const { return choose(Numbers(*g_, yes), no); }
    Numbers choose(const Numbers& yes, std::int64_t no) const { return choose(yes, Numbers(*g_, no)); }
    Numbers choose(std::int64_t yes, std::int64_t no) const {
        return choose(Numbers(*g_, yes), Numbers(*g_, no));
    }
    Numbers at(const Numbers& places) const;
    Numbers at(const std::vector<std::int64_t>& places) const { return at(Numbers(*g_, places)); }
    Numbers shaped(const Shape& shape) const;
    /// "sum", "product", "max", "min" along an axis.
    Numbers reduced(std::string_view op, std::int64_t axis = 0) const;
    /// With others at some places.
    Numbers with_at(const Numbers& places, const Numbers& values) const;
    /// A run in which one of them is outside [least, most] fails, and says what it is.
    Numbers checked(std::string_view what, std::int64_t least, std::optional<Dim> most = std::nullopt) const;

    Shape extents() const;

private:
    struct AsItIs {};
    Numbers(OpWriter& g, Operand x, AsItIs) : g_(&g), x_(std::move(x)) {}
    Numbers op(std::string_view name, const Numbers& other) const;

    OpWriter* g_;
    Operand x_;
};

/// Integers that are known only at run time, where they must lie within [least, most].
Operand checked_numbers(OpWriter& g, const Operand& x, std::string_view what, std::int64_t least,
                        std::optional<Dim> most = std::nullopt);

/// Whether its elements are numbers, or follow from shapes, or it is left out.
bool is_known(const Operand& x);
/// How many elements a list has that a run tells, at most one for each dimension of a tensor: asked before
/// anything is made of them, since a model may declare any number. what: "axes".
std::int64_t told_count(OpWriter& g, const Operand& list, std::string_view what);
/// The elements of a tensor of known length: where only a run knows them they are counted then.
Shape extents_of(OpWriter& g, const Operand& x);
/// The extents that a list holds: known ones as they are, the others as symbols that a run counts.
Shape extents_among(OpWriter& g, const Numbers& whole, const std::vector<std::optional<Item>>& sure);
/// A list to which the operator's rules give so many elements; where the model leaves open how many there
/// are, a run has to give these.
Operand list_of(OpWriter& g, const Operand& x, std::int64_t count);
/// A list of extents that is an input, none of them negative where it is known only at run time. count: how
/// many the operator's rules give it.
Shape dims_of(OpWriter& g, const Node& node, std::size_t index, std::string_view what,
              std::optional<std::size_t> count = std::nullopt);

/// As [before, extent, after] of an axis that is known only at run time, and its own shape.
std::pair<Operand, Shape> around(OpWriter& g, const Operand& x, const Numbers& axis);
/// For each dimension whether it is one of the axes, a list. Errors, in a run: one given twice.
Numbers axes_told(OpWriter& g, const Operand& axes, std::int64_t rank);
/// Axes counted from the front. Errors, in a run: one given twice.
Numbers distinct(const Numbers& axes);
/// The places of `count` dimensions that are not chosen, in order.
Numbers others(OpWriter& g, const Numbers& chosen, std::int64_t rank, std::int64_t count);
/// Errors, in a run: axes outside [-rank, rank).
Numbers counted_from_front(const Numbers& axes, std::int64_t rank);
/// 0, 1, ..., count - 1.
std::vector<std::int64_t> counted_list(std::int64_t count);

}  // namespace headrace::onnx
