#pragma once
#include <optional>
#include <string>

#include "ir/graph.h"

namespace headrace {

/// activation(a · b + bias) + residual: what one fused_matmul computes.
struct FusedMatmul {
    ValueId a = kNoValue, b = kNoValue, bias = kNoValue, residual = kNoValue;
    bool transpose_b = false;
    std::string activation = "none";
    bool round_a = false, round_to_bf16 = false;
};

/// A node that a fused_matmul can stand for: matmul with one matrix b, a plain gemm, fused_matmul itself.
std::optional<FusedMatmul> fused_matmul(const Graph& graph, const Node& node);

/// A constant of shape [1, ..., n] as a list, with the same bytes; what is a list already stays.
ValueId flattened(Graph& graph, ValueId id);

/// The fused_matmul node. A constant bias of shape [1, ..., n] gets a list of its own in the graph.
Result<Node> make_fused(Graph& graph, const FusedMatmul& product, std::vector<ValueId> outputs,
                        std::string label);

/// One number for each column of `product`: [n], or a constant [1, ..., n].
bool is_row(const Graph& graph, ValueId id, ValueId product);

}  // namespace headrace
