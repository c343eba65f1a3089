#include "passes/passes.h"

namespace headrace {

Result<Counts> eliminate_dead_code(Graph& graph, const PassContext&) {
    std::vector<bool> is_needed(graph.values.size());
    for (const auto& [name, id] : graph.outputs) is_needed[id] = true;
    std::vector<bool> keep(graph.nodes.size());
    std::int64_t removed = 0;
    // Readers come after producers, so that one walk from the end sees every reader first.
    for (std::size_t i = graph.nodes.size(); i-- > 0;) {
        const Node& node = graph.nodes[i];
        bool is_live = !node.op->is_pure();
        for (ValueId id : node.outputs) is_live = is_live || is_needed[id];
        keep[i] = is_live;
        if (!is_live) {
            ++removed;
            continue;
        }
        for (ValueId id : node.inputs)
            if (id != kNoValue) is_needed[id] = true;
    }
    const auto values = static_cast<std::int64_t>(graph.values.size());
    graph.compact(keep);
    return Counts{{"nodes_removed", removed},
                  {"values_removed", values - static_cast<std::int64_t>(graph.values.size())}};
}

}  // namespace headrace
