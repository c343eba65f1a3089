#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace headrace {

/// Builds a Graph node by node; every call checks and infers, so that a graph from here is well-formed.
class GraphBuilder {
public:
    /// A run-time operand. Names are non-empty and unique among inputs and states.
    Result<ValueId> input(std::string name, TensorType type);
    /// A tensor that persists between runs, starting as `initial` or zeros.
    Result<ValueId> state(std::string name, TensorType type,
                          std::shared_ptr<const Constant> initial = nullptr);
    /// Bytes must be exactly the packed size of the type.
    Result<ValueId> constant(TensorType type, std::shared_ptr<const Constant> bytes, std::string name = "");
    /// The same, with a copy of the bytes.
    Result<ValueId> constant(TensorType type, std::span<const std::byte> bytes, std::string name = "");
    /// Appends a node; kNoValue leaves an optional operand out.
    Result<std::vector<ValueId>> op(const OpDef& def, std::vector<ValueId> operands, AttrBox attrs,
                                    std::string label = "");
    Result<std::vector<ValueId>> op(const OpDef& def, std::vector<ValueId> operands,
                                    const NamedAttrs& attrs = {}, std::string label = "");
    Status mark_output(std::string name, ValueId id);

    const Graph& graph() const { return graph_; }
    const TensorType& type(ValueId id) const { return graph_.value(id).type; }
    /// Lets go of the constants' bytes; types and names stay.
    void drop_constants();
    /// Hands the graph over; it must have an output. The builder is empty afterwards.
    Result<Graph> finish();

private:
    Status check_name(std::string_view kind, const std::string& name) const;
    ValueId add(Value value);
    void declare_symbols(Shape& shape);
    void add_conditions(std::vector<Condition> open, const Node& node);

    Graph graph_;
    std::set<std::string, std::less<>> names_;
    std::set<std::string, std::less<>> output_names_;
    std::map<std::string, Range, std::less<>> ranges_;  ///< of the inputs' symbols
    std::set<std::string> conditions_;                  ///< those that the graph has
};

}  // namespace headrace
