#pragma once
#include "doors/onnx/ops/resampling_targets.h"

namespace headrace::onnx {

/// An axis whose extents, scale and region are known: points and weights are computed while the model is read.
Operand resized_closed_axis(OpWriter& g, const Operand& x, int dim, const ResizedAxis& axis, const Node& node);

}  // namespace headrace::onnx
