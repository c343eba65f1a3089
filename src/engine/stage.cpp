#include "engine/stage.h"

#include <algorithm>
#include <map>
#include <set>

namespace headrace {
namespace {

bool is_between_stages(const Node& node) {
    return node.op->control != Control::none || !counted_extents(node).empty();
}

/// Which stage each node is in, or comes before, if it has bodies. An op that counts does both: the run
/// counts before the stage that computes its results.
class Cut {
public:
    explicit Cut(const Graph& graph) : graph_(graph), readers_(graph.values.size()) {}

    Status run() {
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
            HR_TRY(declare(graph_.nodes[i]));
            place(static_cast<NodeId>(i));
        }
        return success();
    }

    std::vector<std::size_t> stage_of;
    std::vector<std::vector<NodeId>> before{{}};
    std::map<std::string, Dim> counted;

    bool is_computed(NodeId id) const { return graph_.node(id).op->control == Control::none; }

private:
    Status declare(const Node& node) {
        for (const Dim& d : counted_extents(node))
            if (!counted.emplace(d.str(), d).second)
                return invalid("{}: the extent {} is counted by another node, too; name it anew",
                               node.title(), d.str());
        return success();
    }

    void place(NodeId id) {
        const Node& node = graph_.node(id);
        const bool is_between = is_between_stages(node);
        std::size_t stage = 0;
        for (ValueId operand : node.inputs) {
            if (operand == kNoValue) continue;
            stage = std::max(stage, known_at(graph_.value(operand).type.shape));
            const NodeId producer = graph_.value(operand).producer;
            if (producer < 0) continue;
            const bool is_after = is_between && is_computed(producer);
            stage = std::max(stage, stage_of[static_cast<std::size_t>(producer)] + (is_after ? 1 : 0));
        }
        stage = std::max(stage, known_by_attributes(node));
        stage = std::max(stage, after_readers(node));
        for (ValueId operand : node.inputs)
            if (operand != kNoValue) readers_[operand] = std::max(readers_[operand], stage);
        stage_of.push_back(stage);
        if (before.size() <= stage) before.resize(stage + 1);
        if (!is_between) return;
        before[stage].push_back(id);
        for (const std::string& symbol : counted_symbols(node)) symbol_at_[symbol] = stage;
    }

    /// The first stage in which all symbols of a shape have values.
    std::size_t known_at(const Shape& shape) const {
        std::size_t stage = 0;
        if (symbol_at_.empty()) return stage;
        for (const Dim& d : shape) {
            if (!d.is_symbolic()) continue;
            for (const std::string& name : d.expression().names())
                if (const auto at = symbol_at_.find(name); at != symbol_at_.end())
                    stage = std::max(stage, at->second);
        }
        return stage;
    }

    std::size_t known_by_attributes(const Node& node) const {
        std::size_t stage = 0;
        if (symbol_at_.empty() || node.op->fields.empty()) return stage;
        for (const AttrValue& value : node.op->attr_values(node.attrs.get()))
            if (const auto* shape = std::get_if<Shape>(&value)) stage = std::max(stage, known_at(*shape));
        return stage;
    }

    /// A state may be written when all that read its old version have done so.
    std::size_t after_readers(const Node& node) const {
        return node.op->is_pure() ? 0 : readers_[node.inputs[node.op->writes_state]];
    }

    const Graph& graph_;
    std::vector<std::size_t> readers_;  ///< of each value: the last stage that reads it so far
    std::map<std::string, std::size_t> symbol_at_;
};

/// Builds the graph of one stage.
class StageBuilder {
public:
    StageBuilder(const Graph& whole, const Cut& cut, std::size_t stage)
        : whole_(whole), cut_(cut), stage_(stage), ids_(whole.values.size(), kNoValue) {}

    Stage build(const std::vector<std::string>& symbols) {
        for (ValueId id : whole_.inputs) result_.graph.inputs.push_back(copied(id));
        for (ValueId id : whole_.states) result_.graph.states.push_back(copied(id));
        for (std::size_t i = 0; i < whole_.nodes.size(); ++i)
            if (is_here(static_cast<NodeId>(i))) carry_operands(whole_.nodes[i]);
        result_.symbols = symbols;
        for (const std::string& symbol : symbols)
            result_.graph.inputs.push_back(added({.kind = ValueKind::input,
                                                  .type = {DType::u8, {cut_.counted.at(symbol), 0}},
                                                  .name = fmt::format("count of {}", symbol)}));
        for (std::size_t i = 0; i < whole_.nodes.size(); ++i)
            if (is_here(static_cast<NodeId>(i))) add_node(whole_.nodes[i]);
        mark_made();
        result_.graph.conditions = whole_.conditions;
        result_.before = cut_.before[stage_];
        return std::move(result_);
    }

private:
    bool is_here(NodeId id) const {
        return cut_.stage_of[static_cast<std::size_t>(id)] == stage_ && cut_.is_computed(id);
    }
    bool is_made_here(ValueId id) const {
        const NodeId producer = whole_.value(id).producer;
        return producer >= 0 && is_here(producer);
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
            if (id == kNoValue || ids_[id] != kNoValue || is_made_here(id)) continue;
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

    /// What a later stage or the run reads, and the graph's outputs.
    void mark_made() {
        std::set<ValueId> made;
        for (std::size_t i = 0; i < whole_.nodes.size(); ++i) {
            if (cut_.stage_of[i] <= stage_) continue;
            for (ValueId id : whole_.nodes[i].inputs)
                if (id != kNoValue && is_made_here(id)) made.insert(id);
        }
        for (const auto& [name, id] : whole_.outputs)
            if (is_made_here(id)) made.insert(id);
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

/// Says after which stage each value between stages is no more needed.
void release_values(const Graph& graph, std::vector<Stage>& stages) {
    std::map<ValueId, std::size_t> last;
    for (std::size_t s = 0; s < stages.size(); ++s) {
        for (const auto* values : {&stages[s].carried, &stages[s].made})
            for (ValueId id : *values) last[id] = s;
        for (NodeId id : stages[s].before)
            for (const auto* values : {&graph.node(id).inputs, &graph.node(id).outputs})
                for (ValueId value : *values) last[value] = s;
    }
    for (const auto& [name, id] : graph.outputs) last.erase(id);
    for (const auto& [id, stage] : last) stages[stage].released.push_back(id);
}

}  // namespace

Result<std::vector<Stage>> split_stages(const Graph& graph) {
    std::vector<Stage> stages;
    if (std::ranges::none_of(graph.nodes, is_between_stages)) return stages;
    Cut cut(graph);
    HR_TRY(cut.run());
    std::set<std::string> known;
    for (std::size_t s = 0; s < cut.before.size(); ++s) {
        for (NodeId id : cut.before[s])
            for (const std::string& symbol : counted_symbols(graph.node(id))) known.insert(symbol);
        stages.push_back(StageBuilder(graph, cut, s).build({known.begin(), known.end()}));
    }
    release_values(graph, stages);
    return stages;
}

}  // namespace headrace
