#pragma once
#include <optional>
#include <string>

#include "ir/graph.h"
#include "passes/epilogue_fusion.h"
#include "passes/rewrite.h"

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

/// A product's epilogue with the only reader of its result so far: a row that is added is the bias, a tensor
/// of the result's type the residual, after which comes nothing; or an activation of the op `fused`. None
/// where the reader is nothing of these.
template <class Epilogue>
std::optional<Epilogue> with_reader(const Graph& graph, const EpilogueFusion& fusion, const OpDef& fused,
                                    const Epilogue& e) {
    if (e.residual != kNoValue) return std::nullopt;
    const NodeId id = fusion.next(e.parts);
    if (id < 0) return std::nullopt;
    const Node& node = graph.node(id);
    const ValueId result = graph.node(e.parts.back()).outputs[0];
    Epilogue longer = e;
    longer.parts.push_back(id);
    if (is(node, "add")) {
        const ValueId other = other_addend(node, result);
        if (e.bias == kNoValue && !e.has_activation() && is_row(graph, other, result))
            longer.bias = other;
        else if (graph.value(other).type == graph.value(result).type)
            longer.residual = other;
        else
            return std::nullopt;
    } else if (!e.has_activation() && is_activation_of(fused, node)) {
        longer.activation = node.op->name;
    } else {
        return std::nullopt;
    }
    return longer;
}

}  // namespace headrace
