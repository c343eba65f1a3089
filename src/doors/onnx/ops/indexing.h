#pragma once
#include "doors/onnx/reading/operators.h"

namespace headrace::onnx {

/// As a type that the catalog's ops take as indices.
Operand as_indices(OpWriter& g, const Operand& x);
/// Indices into an axis, or tuples of them into several: those outside are errors, now or in a run.
Operand checked_indices(OpWriter& g, const Operand& x, const Operand& indices,
                        const std::vector<std::int64_t>& axes);
/// ONNX lets the indices have less of the other dimensions than the input.
Operand elements_at(OpWriter& g, const Operand& x, const Operand& indices, int axis);
/// checked_indices of tuples, behind so many dimensions of a batch.
Operand checked_tuples(OpWriter& g, const Operand& x, const Operand& indices, std::int64_t batch = 0);
/// How many elements a step of each dimension is.
Shape row_major(const Shape& shape);

}  // namespace headrace::onnx
