#pragma once
#include "doors/onnx/ops/attention.h"

namespace headrace::onnx {

/// The sum, where one of the two may be null.
Operand sum_of_given(OpWriter& g, const Operand& a, const Operand& b);
/// [batch, steps, heads width] of operands as split_heads makes them; the scale is the node's.
Operand attended_heads(OpWriter& g, const Node& node, const Operand& query, const Operand& key, const Operand& value,
                       const Operand& bias, bool in_rows = false);
/// com.microsoft.Attention of the projections of queries, keys and values side by side.
Results self_attention(OpWriter& g, const Node& node, const Operand& projected, const Operand& mask,
                       const Operand& past, Operand bias);

}  // namespace headrace::onnx
