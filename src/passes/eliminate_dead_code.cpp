#include <algorithm>
#include <set>
#include <string>

#include "passes/eliminate_dead_code.h"

namespace headrace {

namespace {

/// Extents that a run counts: a node that counts is needed by what has them, whether its results are or not.
class CountedExtents {
public:
    explicit CountedExtents(const Graph& graph)
        : graph_(graph),
          is_counting_(
              std::ranges::any_of(graph.nodes, [](const Node& n) { return !counted_symbols(n).empty(); })) {
        if (is_counting_)
            for (const auto& [name, id] : graph.outputs) add(graph.value(id).type.shape);
    }

    bool needs(const Node& node) const {
        if (!is_counting_) return false;
        return std::ranges::any_of(counted_symbols(node),
                                   [&](const std::string& symbol) { return needed_.contains(symbol); });
    }

    void add(const Node& node) {
        if (!is_counting_) return;
        for (ValueId id : node.outputs) add(graph_.value(id).type.shape);
        for (const AttrValue& value : node.op->attr_values(node.attrs.get()))
            if (const auto* shape = std::get_if<Shape>(&value)) add(*shape);
    }

private:
    void add(const Shape& shape) {
        for (const Dim& d : shape)
            if (d.is_symbolic())
                for (auto& name : d.expression().names()) needed_.insert(std::move(name));
    }

    const Graph& graph_;
    bool is_counting_;
    std::set<std::string> needed_;
};

}  // namespace

Result<Counts> eliminate_dead_code(Graph& graph, const PassContext&) {
    std::vector<bool> is_needed(graph.values.size());
    for (const auto& [name, id] : graph.outputs) is_needed[id] = true;
    std::vector<bool> keep(graph.nodes.size());
    CountedExtents extents(graph);
    std::int64_t removed = 0;
    // Readers come after producers, so that one walk from the end sees every reader first.
    for (std::size_t i = graph.nodes.size(); i-- > 0;) {
        const Node& node = graph.nodes[i];
        bool is_live = !node.op->is_pure();
        for (ValueId id : node.outputs) is_live = is_live || is_needed[id];
        is_live = is_live || extents.needs(node);
        keep[i] = is_live;
        if (!is_live) {
            ++removed;
            continue;
        }
        for (ValueId id : node.inputs)
            if (id != kNoValue) is_needed[id] = true;
        extents.add(node);
    }
    const auto values = static_cast<std::int64_t>(graph.values.size());
    graph.compact(keep);
    return Counts{{"nodes_removed", removed},
                  {"values_removed", values - static_cast<std::int64_t>(graph.values.size())}};
}

Pass eliminate_dead_code_pass() {
    return {.name = "eliminate_dead_code",
            .summary = "removes what no output and no state needs",
            .run = &eliminate_dead_code};
}

}  // namespace headrace
