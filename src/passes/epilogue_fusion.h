#pragma once
#include <initializer_list>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "passes/pass.h"

namespace headrace {

/// Lets one node take in the nodes that follow it, each the only reader of the one before: what fusions of
/// epilogues share. The parts of a node to be are listed in order; it computes the result of the last.
class EpilogueFusion {
public:
    explicit EpilogueFusion(Graph& graph);

    /// False once the node became part of another.
    bool is_kept(NodeId id) const { return keep_[static_cast<std::size_t>(id)]; }
    /// The only reader of the last part's result, if all that it gives is a value of the same type; else -1.
    NodeId next(const std::vector<NodeId>& parts) const;
    /// The same where the reader gives one value of any type.
    NodeId only_reader(const std::vector<NodeId>& parts) const;
    /// False if a state among the values has been written when the node runs; absent values are always
    /// current.
    bool are_current(NodeId at, std::initializer_list<ValueId> values) const;
    /// The label of the first part that has one.
    std::string label(const std::vector<NodeId>& parts) const;

    /// Puts the node in the place of the last part and drops the others.
    void replace(const std::vector<NodeId>& parts, Node node);
    /// Removes what was dropped.
    void compact() { graph_.compact(keep_); }

private:
    Graph& graph_;
    std::vector<std::int32_t> uses_;
    std::vector<NodeId> reader_;  ///< the last node that reads each value
    std::vector<NodeId> writer_;
    std::vector<bool> keep_;
};

/// Whether the op's attribute `activation` names this node's op, which has no attributes of its own.
bool is_activation_of(const OpDef& fused, const Node& node);

/// The operand of an addition that is not `known`.
inline ValueId other_addend(const Node& add, ValueId known) { return add.inputs[add.inputs[0] == known]; }

}  // namespace headrace
