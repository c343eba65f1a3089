#pragma once
#include <span>
#include <vector>

#include "base/result.h"
#include "ir/op_def.h"

namespace headrace::ops {

using Types = std::vector<TensorType>;

/// Questions about extents that may be open: "no" is false; where only the symbols' values decide, the answer
/// is true and a condition of the node.
bool same_extent(const Operands& in, const Dim& a, const Dim& b);
bool same_shape(const Operands& in, const Shape& a, const Shape& b);
bool at_least(const Operands& in, const Dim& a, const Dim& b);
/// Whether `whole` is a multiple of `part`; of 0 nothing is.
bool divides(const Operands& in, const Dim& part, const Dim& whole);
/// Whether `from` broadcasts to exactly `to`.
bool broadcasts_to(const Operands& in, const Shape& from, const Shape& to);
/// NumPy broadcasting of both shapes: trailing dimensions align and must be equal or 1.
Result<Shape> broadcast(const Operands& in, const Shape& a, const Shape& b);

/// An axis in [-rank, rank) as a non-negative index; "Axis 2 out of bounds for rank 2".
Result<int> normalize_axis(std::int64_t axis, int rank);
/// Each in range, none twice; sorted ascending.
Result<std::vector<int>> normalize_axes(std::span<const std::int64_t> axes, int rank);

/// The output type of an op that keeps its input's type.
inline Result<Types> same_type(const TensorType& type) { return Types{type}; }

/// Shared output rule of convolutions and pools: (size + before + after - ((kernel - 1) * dilation + 1)) /
/// stride + 1, rounded down or up. Errors name `what` and all values. Symbolic extents give a symbol named by
/// the expression.
struct Window {
    Dim kernel;
    std::int64_t stride, dilation, before, after;
};
Result<Dim> window_output(std::string_view what, const Dim& size, const Window& window,
                          bool round_up = false);

/// What a generic element-wise or data-movement op costs: `per_element` operations and all bytes once.
Cost elementwise_cost(const Operands& in, std::span<const TensorType> out, double per_element);

}  // namespace headrace::ops
