#pragma once
#include "doors/onnx/ops/attention.h"

namespace headrace::onnx {

/// The sum, where one of the two may be null.
Operand sum_of_given(OpWriter& g, const Operand& a, const Operand& b);
/// [batch, steps, heads width] of operands as split_heads makes them; the scale is the node's.
Operand attended_heads(OpWriter& g, const Node& node, const Operand& query, const Operand& key,
                       const Operand& value, const Operand& bias, bool in_rows = false);
/// An addend of a mask of 0 and 1 (of keys, or of queries and keys), or of the sequences' lengths and starts.
Operand key_bias(OpWriter& g, const Node& node, const Operand& mask, const Dim& batch, const Dim& total,
                 ElementType type);
/// What both sides of an attention have.
struct Sides {
    Operand query, key, value;
};
/// MultiHeadAttention's with their heads apart, and with the biases of their projections.
Sides multi_head_operands(OpWriter& g, const Node& node, bool in_rows);
/// com.microsoft.MultiHeadAttention.
Results multi_head_attention(OpWriter& g, const Node& node);
/// com.microsoft.Attention of the projections of queries, keys and values side by side.
Results self_attention(OpWriter& g, const Node& node, const Operand& projected, const Operand& mask,
                       const Operand& past, Operand bias);

}  // namespace headrace::onnx
