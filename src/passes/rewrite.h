#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/node_attr.h"
#include "ops/op_name.h"

/// What passes ask of a graph, and how they change it.
namespace headrace {

/// How often each value is read: by operands, and by each output that it is.
std::vector<std::int32_t> count_uses(const Graph& graph);

/// For each value the node that overwrites it, which only states have; else -1. Nothing may read it later.
std::vector<NodeId> state_writers(const Graph& graph);

/// The node that computes a value by this op, as its first result; else null.
const Node* producer(const Graph& graph, ValueId id, OpName op);

/// The number that a constant of one element holds; of floats only.
std::optional<double> scalar_constant(const Graph& graph, ValueId id);

/// A clamp's limit by the attribute's name, min_value or max_value; NaN is none.
std::optional<double> clamp_limit(const Node& clamp, std::string_view name);

/// All attributes of a node by name.
NamedAttrs named_attrs(const Node& node);
/// Which dimension of a transposition's operand each of its result is, counted from the first.
std::vector<std::int64_t> permutation_of(const Graph& graph, const Node& transpose);

/// Values that give way to others. Nodes are rewritten in order, so that a replacement sees earlier ones.
class Replacements {
public:
    explicit Replacements(std::size_t values) : by_(values, kNoValue) {}

    void grow(std::size_t values) { by_.resize(values, kNoValue); }
    void replace(ValueId old, ValueId by) { by_[old] = by; }
    ValueId operator()(ValueId id) const { return id == kNoValue || by_[id] == kNoValue ? id : by_[id]; }

    void rewrite_operands(Node& node) const {
        for (ValueId& id : node.inputs) id = (*this)(id);
    }
    void rewrite_outputs(Graph& graph) const {
        for (auto& [name, id] : graph.outputs) id = (*this)(id);
    }

private:
    std::vector<ValueId> by_;
};

}  // namespace headrace
