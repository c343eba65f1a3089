#pragma once
#include "doors/onnx/reading/operators.h"

namespace headrace::onnx {

/// What both shapes broadcast to, as far as extents say.
Shape broadcast(OpWriter& g, const Shape& a, const Shape& b);

}  // namespace headrace::onnx
