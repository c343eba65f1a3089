#pragma once
#include "doors/onnx/reading/operators.h"

namespace headrace::onnx {

/// A node of ONNX's own operator on other operands, with the node's attributes.
Node onnx_node(const Node& node, std::string_view op, std::int64_t opset, std::vector<Operand> inputs);
/// Reads a node by its operator's function. Errors: Refused where the operator is not read.
Results read_onnx(OpWriter& g, const Node& node);

/// [n, h, w, c] as [n, c, h, w], and back.
Operand channels_first(OpWriter& g, const Operand& x);
Operand channels_last(OpWriter& g, const Operand& x);

}  // namespace headrace::onnx
