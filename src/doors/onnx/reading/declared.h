#pragma once
#include <vector>

#include "doors/onnx/model/source.h"
#include "headrace/onnx.h"

/// What a model says of its inputs and outputs.
namespace headrace::onnx {

/// What a caller gives: initializers, which may be listed as inputs, too, are none.
Result<std::vector<const ValueMessage*>> inputs_of(const Source& source);
OnnxValue declared(const ValueMessage& value);
/// "n", or "x.0" for one without a name.
std::string dimension_name(const DimensionMessage& dimension, std::string_view input, std::size_t axis);

}  // namespace headrace::onnx
