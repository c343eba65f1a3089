#include "engine/stage.h"

#include <algorithm>
#include <set>

namespace headrace {
namespace {

/// Which stage each node is in, and which nodes count before each.
struct Cut {
    std::vector<std::size_t> stage_of;
    std::vector<std::vector<NodeId>> counting{{}};
};

Cut cut(const Graph& graph) {
    Cut found;
    std::size_t stage = 0;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        const Node& node = graph.nodes[i];
        if (!counted_symbols(node).empty()) {
            const bool is_there = std::ranges::all_of(node.inputs, [&](ValueId id) {
                const NodeId producer = id == kNoValue ? -1 : graph.value(id).producer;
                return producer < 0 || found.stage_of[static_cast<std::size_t>(producer)] < stage;
            });
            if (!is_there) {
                ++stage;
                found.counting.emplace_back();
            }
            found.counting.back().push_back(static_cast<NodeId>(i));
        }
        found.stage_of.push_back(stage);
    }
    return found;
}

/// Builds the graph of one stage.
class StageBuilder {
public:
    StageBuilder(const Graph& whole, const Cut& cut, std::size_t stage)
        : whole_(whole), cut_(cut), stage_(stage), ids_(whole.values.size(), kNoValue) {}

    Stage build(const std::vector<std::string>& symbols) {
        for (ValueId id : whole_.inputs) result_.graph.inputs.push_back(copied(id));
        for (ValueId id : whole_.states) result_.graph.states.push_back(copied(id));
        for (std::size_t i = 0; i < whole_.nodes.size(); ++i)
            if (cut_.stage_of[i] == stage_) carry_operands(whole_.nodes[i]);
        result_.symbols = symbols;
        for (const std::string& symbol : symbols)
            result_.graph.inputs.push_back(added({.kind = ValueKind::input,
                                                  .type = {DType::u8, {Dim::symbolic(symbol, 0), 0}},
                                                  .name = fmt::format("count of {}", symbol)}));
        for (std::size_t i = 0; i < whole_.nodes.size(); ++i)
            if (cut_.stage_of[i] == stage_) add_node(whole_.nodes[i]);
        mark_made();
        result_.graph.conditions = whole_.conditions;
        result_.counting = cut_.counting[stage_];
        return std::move(result_);
    }

private:
    bool is_here(ValueId id) const {
        const NodeId producer = whole_.value(id).producer;
        return producer >= 0 && cut_.stage_of[static_cast<std::size_t>(producer)] == stage_;
    }

    ValueId added(Value value) {
        result_.graph.values.push_back(std::move(value));
        return static_cast<ValueId>(result_.graph.values.size() - 1);
    }

    ValueId copied(ValueId id) {
        if (ids_[id] == kNoValue) ids_[id] = added(whole_.value(id));
        return ids_[id];
    }

    void carry_operands(const Node& node) {
        for (ValueId id : node.inputs) {
            if (id == kNoValue || ids_[id] != kNoValue || is_here(id)) continue;
            if (whole_.value(id).kind != ValueKind::result) {
                copied(id);
                continue;
            }
            ids_[id] = added({.kind = ValueKind::input,
                              .type = whole_.value(id).type,
                              .name = fmt::format("result {}", id)});
            result_.graph.inputs.push_back(ids_[id]);
            result_.carried.push_back(id);
        }
    }

    void add_node(const Node& node) {
        Node here = node;
        const auto index = static_cast<NodeId>(result_.graph.nodes.size());
        for (ValueId& id : here.inputs) id = id == kNoValue ? kNoValue : ids_[id];
        for (ValueId& id : here.outputs) {
            id = copied(id);
            result_.graph.value(id).producer = index;
        }
        result_.graph.nodes.push_back(std::move(here));
    }

    /// What a later stage reads or counts, and the graph's outputs.
    void mark_made() {
        std::set<ValueId> made;
        for (std::size_t i = 0; i < whole_.nodes.size(); ++i) {
            const bool counts_later = std::ranges::any_of(
                cut_.counting, [&](const auto& nodes) { return std::ranges::count(nodes, NodeId(i)) > 0; });
            if (cut_.stage_of[i] <= stage_ && !counts_later) continue;
            for (ValueId id : whole_.nodes[i].inputs)
                if (id != kNoValue && is_here(id)) made.insert(id);
        }
        for (const auto& [name, id] : whole_.outputs)
            if (is_here(id)) made.insert(id);
        for (ValueId id : made) {
            result_.made.push_back(id);
            result_.graph.outputs.emplace_back(fmt::format("result {}", id), ids_[id]);
        }
    }

    const Graph& whole_;
    const Cut& cut_;
    std::size_t stage_;
    std::vector<ValueId> ids_;  ///< of the whole graph's values, in this stage's
    Stage result_;
};

}  // namespace

Result<std::vector<Stage>> split_stages(const Graph& graph) {
    std::vector<Stage> stages;
    const Cut found = cut(graph);
    std::set<std::string> known;
    for (std::size_t s = 0; s < found.counting.size(); ++s) {
        for (NodeId id : found.counting[s])
            for (const std::string& symbol : counted_symbols(graph.node(id)))
                if (!known.insert(symbol).second)
                    return invalid("{}: the extent {} is counted by another node, too; name it anew",
                                   graph.node(id).title(), symbol);
        stages.push_back(StageBuilder(graph, found, s).build({known.begin(), known.end()}));
    }
    if (known.empty()) stages.clear();
    return stages;
}

}  // namespace headrace
