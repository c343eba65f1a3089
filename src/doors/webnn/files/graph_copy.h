#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "ir/graph_builder.h"
#include "ir/node_attr.h"
#include "ops/catalog.h"

namespace headrace::webnn {

/// A graph once more, with others in place of some of its nodes and constants.
class GraphCopy {
public:
    explicit GraphCopy(const Graph& graph) : graph_(graph), ids_(graph.values.size(), kNoValue) {}
    virtual ~GraphCopy() = default;

    Result<Graph> run();

protected:
    /// Adds a node, or what stands for it: a result for each of its own.
    virtual Result<std::vector<ValueId>> add(const Node& node) = 0;
    /// Adds a constant, unless it comes with a node that reads it.
    virtual Status take_constant(ValueId old);

    /// The copy of one of the graph's values; kNoValue before it is made.
    ValueId& id(ValueId old) { return ids_[static_cast<std::size_t>(old)]; }
    Result<ValueId> op(std::string_view name, std::vector<ValueId> operands, const NamedAttrs& attrs = {},
                       const std::string& label = "");

    const Graph& graph_;
    GraphBuilder builder_;

private:
    Status take(ValueId old);

    std::vector<ValueId> ids_;  ///< by the given graph's
};

}  // namespace headrace::webnn
