#pragma once
#include <vector>

#include "doors/onnx/ops/contrib_attention.h"

namespace headrace::onnx {

/// Queries, keys and values with their heads apart, which the node has packed or as its first three inputs.
std::vector<Operand> grouped_operands(OpWriter& g, const Node& node, std::int64_t heads, std::int64_t groups);
/// The places of so many steps at the end of sequences of these lengths, i64[batch]: [batch, steps].
Operand places_of_steps(OpWriter& g, const Operand& lengths, const Dim& batch, const Dim& steps);
/// Queries and keys, turned by the angles of their places. tables: the input of the cosines; that of the
/// sines is the next.
void turn_by_places(OpWriter& g, const Node& node, std::vector<Operand>& of, const Operand& places,
                    std::size_t tables);

}  // namespace headrace::onnx
