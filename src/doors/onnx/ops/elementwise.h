#pragma once
#include "doors/onnx/reading/operators.h"

namespace headrace::onnx {

/// x sigmoid(alpha x)
Operand scaled_silu(OpWriter& g, const Operand& x, double alpha);

}  // namespace headrace::onnx
