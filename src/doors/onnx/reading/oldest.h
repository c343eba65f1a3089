#pragma once
#include "doors/onnx/reading/node.h"
#include "doors/onnx/reading/op_writer.h"

namespace headrace::onnx {

/// A node of operator sets 1 to 6 as operator set 7 has it, which every function of ops/ knows: the same
/// computation; a newer node as it is.
Node modernized(OpWriter& g, const Node& node);

}  // namespace headrace::onnx
