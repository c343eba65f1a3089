#pragma once
#include "doors/onnx/reading/operators.h"

namespace headrace::onnx {

/// As numpy.matmul; vectors become rows and columns, and integers are exact.
Operand matrix_product(OpWriter& g, Operand a, Operand b);

}  // namespace headrace::onnx
