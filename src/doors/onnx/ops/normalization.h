#pragma once
#include "doors/onnx/reading/operators.h"

namespace headrace::onnx {

/// x less its mean, divided by its deviation; the mean, and what it was multiplied by.
struct Normalized {
    Operand y, mean, inverse;
};
Normalized normalized(OpWriter& g, const Operand& x, const std::vector<std::int64_t>& axes, double epsilon);
/// Over the axes from `axis` on; scale and bias, which may be null, may also have other shapes that
/// broadcast.
Operand layer_norm(OpWriter& g, const Operand& x, const Operand& scale, const Operand& bias, int axis,
                   double epsilon);
Operand rms_norm(OpWriter& g, const Operand& x, const Operand& scale, int axis, double epsilon);

}  // namespace headrace::onnx
