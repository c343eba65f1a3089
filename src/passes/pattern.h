#pragma once
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/catalog.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace headrace {

/// What passes ask while they look for compositions, and how they put one node in the place of one.
class Patterns {
public:
    explicit Patterns(Graph& graph)
        : graph_(graph), uses_(count_uses(graph)), writer_(state_writers(graph)) {}

    Graph& graph() { return graph_; }
    const TensorType& type(ValueId id) const { return graph_.value(id).type; }
    bool is_used_once(ValueId id) const { return uses_[static_cast<std::size_t>(id)] == 1; }

    const Node* producer(ValueId id, OpName op) const { return headrace::producer(graph_, id, op); }
    /// The operands of a node of two, both ways round.
    static std::array<std::pair<ValueId, ValueId>, 2> both_ways(const Node& node) {
        return {{{node.inputs[0], node.inputs[1]}, {node.inputs[1], node.inputs[0]}}};
    }
    /// The number that a constant of one element holds; of floats only.
    std::optional<double> scalar(ValueId id) const;

    /// Whether a value is a transposition that one node reads, so that its last two dimensions can change
    /// places.
    bool may_transpose(ValueId id) const;
    Status transpose(ValueId id);

    /// Puts the op in the place of node `at`, whose only result it computes from other operands. False where
    /// an operand is a state that has been overwritten by then. What nothing reads any more is left for
    /// eliminate_dead_code.
    Result<bool> replace(NodeId at, OpName op, std::vector<ValueId> operands, const NamedAttrs& attrs);

private:
    Graph& graph_;
    std::vector<std::int32_t> uses_;
    std::vector<NodeId> writer_;
};

/// What several nodes spell out, and one computes. A source <stem>.cpp of this folder that knows some defines
/// `Compositions <stem>_compositions()`, by which CMake finds it.
struct Composition {
    std::string_view name;  ///< in the plural, as it is counted
    /// Looks whether node `at` ends one, and replaces it: true when it did.
    Result<bool> (*recognize)(Patterns& p, NodeId at);
    /// Those that are looked for before at each node, which may be one after the other.
    std::vector<std::string_view> after = {};
};
using Compositions = std::vector<Composition>;

}  // namespace headrace
