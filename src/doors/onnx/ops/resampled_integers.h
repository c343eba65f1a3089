#pragma once
#include "doors/onnx/ops/resampling_targets.h"

namespace headrace::onnx {

/// Images of integers in other sizes: sums of neighbours in single precision, rounded as ONNX Runtime has it.
/// Linear: one sum over all axes, which goes towards zero. axes: those that are resized.
Operand interpolated_integers(OpWriter& g, const Node& node, const Operand& x,
                              const std::vector<std::pair<int, ResizedAxis>>& axes, const Operand& stays);
/// With antialias: an axis after the other from the last one on, each rounded to integers.
Operand antialiased_integers(OpWriter& g, const Node& node, const Operand& x,
                             const std::vector<std::pair<int, ResizedAxis>>& axes, const Operand& stays);

}  // namespace headrace::onnx
