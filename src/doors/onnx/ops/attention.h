#pragma once
#include "doors/onnx/reading/operators.h"

namespace headrace::onnx {

/// [batch, steps, heads width] as [batch, heads, steps, width], or in rows [batch, steps, heads, width].
Operand split_heads(OpWriter& g, const Operand& x, std::int64_t heads, bool in_rows = false);
/// [batch, heads, steps, width] as [batch, steps, heads width]
Operand joined_heads(OpWriter& g, const Operand& y);
/// Extents of an operand that must have so many.
Shape extents_of_rank(OpWriter& g, const Operand& x, int rank, std::string_view what);
/// An addend of scores: 0 where the condition holds, elsewhere the value.
Operand shut_where_not(OpWriter& g, const Operand& holds, double value, ElementType type);

/// x [batch, heads, steps, width]; cos and sin [batch, steps, half the rotated width]. width: of the rotated
/// values, 0 for all.
Operand rotated(OpWriter& g, const Operand& x, const Operand& cos, const Operand& sin, bool interleaved,
                const Dim& width);

/// The heads' products of queries and keys by the node's scale, which may be the default: [batch, heads,
/// steps, total]. Heads of queries come in groups of one head of keys.
Operand head_products(OpWriter& g, const Node& node, const Operand& query, const Operand& key);
/// Sums of the heads' values by these weights: [batch, heads, steps, width].
Operand head_sums(OpWriter& g, const Operand& weights, const Operand& value);

/// What the catalog's op does not have of Attention: scores that are capped or given out, windows, lengths of
/// the keys, and causality behind earlier steps. query, key, value: [batch, heads, steps, width], the earlier
/// steps included. The result and, where it is wanted, the scores.
struct Attended {
    Operand y, scores;
};
Attended attended_by_parts(OpWriter& g, const Node& node, const Operand& query, const Operand& key,
                           const Operand& value);

}  // namespace headrace::onnx
