#pragma once
#include <vector>

#include "doors/onnx/model/source.h"
#include "headrace/onnx.h"

/// What a model says of its inputs and outputs.
namespace headrace::onnx {

/// What is listed as an input: what a caller gives, and initializers.
struct ListedInputs {
    std::vector<const ValueMessage*> given, initializers;
};
Result<ListedInputs> inputs_of(const Source& source);
OnnxValue declared(const ValueMessage& value);
/// "n", or "x.0" for one without a name.
std::string dimension_name(const DimensionMessage& dimension, std::string_view input, std::size_t axis);

}  // namespace headrace::onnx
