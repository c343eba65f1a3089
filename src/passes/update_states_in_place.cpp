#include <algorithm>
#include <map>

#include "ops/catalog.h"
#include "passes/eliminate_dead_code.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace headrace {
namespace {

/// The list of positions that was expanded to one index an element: expand(reshape(p, [1, .., n, .., 1])).
ValueId expanded_positions(const Graph& graph, ValueId indices, std::size_t axis) {
    const Node* expand = producer(graph, indices, "expand");
    if (!expand) return kNoValue;
    const ValueId column = expand->inputs[0];
    const Shape &shape = graph.value(column).type.shape, &whole = graph.value(indices).type.shape;
    if (shape.size() > whole.size() || whole.size() - shape.size() > axis) return kNoValue;
    const std::size_t shift = whole.size() - shape.size();
    for (std::size_t i = 0; i < shape.size(); ++i)
        if (i + shift == axis ? shape[i] != whole[axis] : !shape[i].is(1)) return kNoValue;
    if (shape.size() == 1) return column;
    const Node* reshape = producer(graph, column, "reshape");
    return reshape && graph.value(reshape->inputs[0]).type.rank() == 1 ? reshape->inputs[0] : kNoValue;
}

/// The nodes that read each state, in order.
std::map<ValueId, std::vector<NodeId>> state_readers(const Graph& graph) {
    std::map<ValueId, std::vector<NodeId>> readers;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
        for (ValueId id : graph.nodes[i].inputs)
            if (id != kNoValue && graph.value(id).kind == ValueKind::state)
                readers[id].push_back(static_cast<NodeId>(i));
    return readers;
}

/// Writes the slices of a state that change, where the state was assigned a copy of itself with those slices
/// replaced (scatter_elements) and nothing reads its old content afterwards.
Result<Counts> update_states_in_place(Graph& graph, const PassContext& context) {
    const OpDef& update = catalog_op("cache_update");
    Replacements replacements(graph.values.size());
    std::vector<bool> keep(graph.nodes.size(), true);
    const auto readers = state_readers(graph);
    std::int64_t updates = 0;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        const Node& assign = graph.nodes[i];
        if (!is(assign, "assign") || assign.inputs[0] == assign.inputs[1]) continue;
        const ValueId state = assign.inputs[0], next = assign.inputs[1];
        if (!producer(graph, next, "scatter_elements")) continue;
        const NodeId at = graph.value(next).producer;
        Node& scatter = graph.nodes[static_cast<std::size_t>(at)];
        const auto reads_old_content = [&](NodeId reader) {
            return reader > at && reader != static_cast<NodeId>(i);
        };
        const auto& reading = readers.at(state);
        if (scatter.inputs[0] != state || std::any_of(reading.begin(), reading.end(), reads_old_content))
            continue;
        const int rank = graph.value(state).type.rank();
        const auto axis = attr<std::int64_t>(scatter, "axis");
        const ValueId positions = expanded_positions(graph, scatter.inputs[1],
                                                     static_cast<std::size_t>(axis < 0 ? axis + rank : axis));
        if (positions == kNoValue) continue;
        HR_ASSIGN(scatter.attrs, update.make_attrs({{"axis", axis}}));
        scatter.op = &update;
        scatter.inputs[1] = positions;
        replacements.replace(assign.outputs[0], next);
        keep[i] = false;
        ++updates;
    }
    for (Node& node : graph.nodes) replacements.rewrite_operands(node);
    replacements.rewrite_outputs(graph);
    graph.compact(keep);
    HR_TRY(eliminate_dead_code(graph, context));
    return Counts{{"updates", updates}};
}

}  // namespace

Pass update_states_in_place_pass() {
    return {.name = "update_states_in_place",
            .summary = "writes only the slices of a state that change",
            .run = &update_states_in_place,
            .after = {"recognize_compositions"}};
}

}  // namespace headrace
