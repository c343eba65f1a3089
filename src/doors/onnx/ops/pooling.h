#pragma once
#include "doors/onnx/ops/convolution.h"

namespace headrace::onnx {

/// The catalog's max_pool2d, average_pool2d or l2_pool2d over windows of one to three dimensions. up: as
/// ceil_mode has it.
Operand pooled(OpWriter& g, std::string_view op, const Operand& x, const Window& window, bool up);
/// AveragePool with the node's attributes, of an operand that may have been computed from its input.
Operand averages(OpWriter& g, const Node& node, const Operand& x);
/// The same where all of a window counts, also what lies outside the padded image.
Operand means_with_margin(OpWriter& g, const Node& node, const Operand& x);

}  // namespace headrace::onnx
