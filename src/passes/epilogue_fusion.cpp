#include "passes/epilogue_fusion.h"

#include <algorithm>

#include "passes/rewrite.h"

namespace headrace {

EpilogueFusion::EpilogueFusion(Graph& graph)
    : graph_(graph),
      uses_(count_uses(graph)),
      reader_(graph.values.size(), -1),
      writer_(state_writers(graph)),
      keep_(graph.nodes.size(), true) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
        for (ValueId id : graph.nodes[i].inputs)
            if (id != kNoValue) reader_[id] = static_cast<NodeId>(i);
}

NodeId EpilogueFusion::only_reader(const std::vector<NodeId>& parts) const {
    const ValueId result = graph_.node(parts.back()).outputs[0];
    // uses_ counts being an output of the graph as well.
    if (uses_[result] != 1) return -1;
    const NodeId id = reader_[result];
    return id >= 0 && is_kept(id) && graph_.node(id).outputs.size() == 1 ? id : -1;
}

NodeId EpilogueFusion::next(const std::vector<NodeId>& parts) const {
    const NodeId id = only_reader(parts);
    if (id < 0) return -1;
    const ValueId result = graph_.node(parts.back()).outputs[0];
    return graph_.value(graph_.node(id).outputs[0]).type == graph_.value(result).type ? id : -1;
}

bool EpilogueFusion::are_current(NodeId at, std::initializer_list<ValueId> values) const {
    return std::all_of(values.begin(), values.end(),
                       [&](ValueId id) { return id == kNoValue || writer_[id] < 0 || writer_[id] > at; });
}

std::string EpilogueFusion::label(const std::vector<NodeId>& parts) const {
    for (NodeId part : parts)
        if (const std::string& label = graph_.node(part).label; !label.empty()) return label;
    return "";
}

void EpilogueFusion::replace(const std::vector<NodeId>& parts, Node node) {
    for (NodeId part : parts) keep_[static_cast<std::size_t>(part)] = false;
    const auto last = static_cast<std::size_t>(parts.back());
    keep_[last] = true;
    graph_.nodes[last] = std::move(node);
}

bool is_activation_of(const OpDef& fused, const Node& node) {
    const auto field = std::find_if(fused.fields.begin(), fused.fields.end(),
                                    [](const Field& f) { return f.name == "activation"; });
    return node.inputs.size() == 1 && node.op->fields.empty() &&
           std::find(field->choices.begin(), field->choices.end(), node.op->name) != field->choices.end();
}

}  // namespace headrace
