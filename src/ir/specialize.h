#pragma once
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

/// Graphs of the same symbols at one set of numbers after another, such as a cache that grows.
namespace headrace {

/// Which symbols each node depends on: by its operands, its attributes and its results.
class SymbolUses {
public:
    explicit SymbolUses(const Graph& graph);

    /// For each node whether it may be another one: a symbol of its own has another value, or one that the
    /// inputs do not give.
    std::vector<bool> changed_nodes(const SymbolBindings& before, const SymbolBindings& now) const;
    std::vector<bool> changed_conditions(const SymbolBindings& before, const SymbolBindings& now) const;

private:
    using Uses = std::vector<std::size_t>;  // indices of names_

    std::vector<bool> changed_symbols(const SymbolBindings& before, const SymbolBindings& now) const;
    void add(Uses& uses, const Shape& shape);

    std::vector<std::string> names_;
    std::vector<Uses> nodes_, conditions_;
};

/// Makes `concrete`, which is the graph with other numbers, specialize(graph, bindings): only what has
/// changed is inferred again. Errors: those of specialize; what is left is of no use then.
Status specialize_changes(const Graph& graph, const SymbolBindings& bindings, Graph& concrete,
                          const std::vector<bool>& changed_nodes,
                          const std::vector<bool>& changed_conditions);

}  // namespace headrace
