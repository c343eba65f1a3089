#pragma once
#include "doors/onnx/reading/operators.h"

namespace headrace::onnx {

/// Elements around a tensor; negative amounts take elements away. mode: "constant", "edge", "reflect" or
/// "wrap".
Operand with_margin(OpWriter& g, const Operand& x, const Shape& begin, const Shape& end,
                    const std::string& mode = "constant", const AttrValue& value = 0.0);

}  // namespace headrace::onnx
