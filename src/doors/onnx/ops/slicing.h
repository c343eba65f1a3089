#pragma once
#include <optional>

#include "doors/onnx/reading/operators.h"

namespace headrace::onnx {

/// x[start:end:step] along an axis as NumPy has it, but a start before the first element is that. end: none
/// for the last element.
Operand sliced(OpWriter& g, const Operand& x, int axis, const Dim& start, const std::optional<Dim>& end,
               std::int64_t step);

}  // namespace headrace::onnx
