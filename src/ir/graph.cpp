#include "ir/graph.h"

#include <set>

namespace headrace {

std::vector<const TensorType*> Graph::operand_types(const Node& node) const {
    std::vector<const TensorType*> types;
    types.reserve(node.inputs.size());
    for (ValueId id : node.inputs) types.push_back(id == kNoValue ? nullptr : &value(id).type);
    return types;
}

std::vector<TensorType> Graph::output_types(const Node& node) const {
    std::vector<TensorType> types;
    for (ValueId id : node.outputs) types.push_back(value(id).type);
    return types;
}

std::vector<bool> Graph::constant_mask(const Node& node) const {
    std::vector<bool> mask;
    for (ValueId id : node.inputs) mask.push_back(id != kNoValue && value(id).kind == ValueKind::constant);
    return mask;
}

std::size_t Graph::constant_bytes() const {
    std::size_t total = 0;
    for (const Value& v : values)
        if (v.kind == ValueKind::constant) total += v.constant->bytes.size();
    return total;
}

bool Graph::is_concrete() const {
    for (const Value& v : values)
        if (!v.type.is_concrete()) return false;
    return true;
}

void Graph::compact(const std::vector<bool>& keep) {
    std::vector<bool> used(values.size());
    for (ValueId id : inputs) used[id] = true;
    for (ValueId id : states) used[id] = true;
    for (const auto& [name, id] : outputs) used[id] = true;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (!keep[i]) continue;
        for (ValueId id : nodes[i].outputs) used[id] = true;
        for (ValueId id : nodes[i].inputs)
            if (id != kNoValue) used[id] = true;
    }
    std::vector<ValueId> new_id(values.size(), kNoValue);
    std::vector<Value> kept_values;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (!used[i]) continue;
        new_id[i] = static_cast<ValueId>(kept_values.size());
        kept_values.push_back(std::move(values[i]));
    }
    values = std::move(kept_values);
    const auto renumber = [&](ValueId& id) { id = id == kNoValue ? kNoValue : new_id[id]; };
    std::vector<Node> kept_nodes;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (!keep[i]) continue;
        for (ValueId& id : nodes[i].inputs) renumber(id);
        for (ValueId& id : nodes[i].outputs) {
            renumber(id);
            values[id].producer = static_cast<NodeId>(kept_nodes.size());
        }
        kept_nodes.push_back(std::move(nodes[i]));
    }
    nodes = std::move(kept_nodes);
    for (ValueId& id : inputs) renumber(id);
    for (ValueId& id : states) renumber(id);
    for (auto& [name, id] : outputs) renumber(id);
}

namespace {

/// An input's extent "(n+1)" gives n, where no input has that extent itself.
Status bind_names_of_lines(const Graph& graph, SymbolBindings& bindings) {
    for (const ValueId id : graph.inputs)
        for (const Dim& declared : graph.value(id).type.shape) {
            const auto line = declared.is_symbolic() ? declared.expression().line() : std::nullopt;
            if (!line || bindings.contains(line->name)) continue;
            const std::int64_t size = bindings.at(declared.str());
            std::int64_t whole = 0;
            if (__builtin_sub_overflow(size, line->offset, &whole) || whole == INT64_MIN) continue;
            if (whole % line->factor != 0 || whole / line->factor < 0)
                return invalid("input '{}': an extent of {} is not {} for any {}", graph.value(id).name, size,
                               declared.str(), line->name);
            bindings.emplace(line->name, whole / line->factor);
        }
    return success();
}

}  // namespace

Shape counted_extents(const Node& node) {
    Shape extents;
    if (!node.op || (!node.op->count && node.op->control == Control::none)) return extents;
    const auto values = node.op->attr_values(node.attrs.get());
    for (std::size_t i = 0; i < values.size(); ++i) {
        const auto* counts = std::get_if<Shape>(&values[i]);
        if (!counts || node.op->fields[i].name != "counts") continue;
        for (const Dim& d : *counts)
            if (d.is_symbolic()) extents.push_back(d);
    }
    return extents;
}

std::vector<std::string> counted_symbols(const Node& node) {
    std::vector<std::string> symbols;
    for (const Dim& d : counted_extents(node)) symbols.push_back(d.str());
    return symbols;
}

std::vector<GraphPtr> bodies(const Node& node) {
    std::vector<GraphPtr> graphs;
    if (!node.op || node.op->control == Control::none) return graphs;
    for (const AttrValue& value : node.op->attr_values(node.attrs.get()))
        if (const auto* graph = std::get_if<GraphPtr>(&value); graph && *graph) graphs.push_back(*graph);
    return graphs;
}

std::vector<Condition> conditions_of(const Graph& graph, const std::vector<bool>& of) {
    std::vector<Condition> all;
    std::set<std::string> known;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        if (!of[i]) continue;
        const Node& node = graph.nodes[i];
        const auto types = graph.operand_types(node);
        std::vector<Condition> open;
        if (!check_and_infer(*node.op, Operands(types, &open), node.attrs.get()).ok()) continue;
        for (Condition& condition : open) {
            if (!known.insert(condition.str()).second) continue;
            condition.where = node.title();
            all.push_back(std::move(condition));
        }
    }
    return all;
}

Result<SymbolBindings> bind_symbols(const Graph& graph, std::span<const std::vector<std::int64_t>> shapes) {
    SymbolBindings bindings;
    std::vector<std::pair<const Dim*, std::int64_t>> known;
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
        const Value& input = graph.value(graph.inputs[i]);
        const auto& given = shapes[i];
        const auto mismatch = [&] {
            return invalid("input '{}' has shape {}, the graph declares {}", input.name, str(given),
                           str(input.type.shape));
        };
        if (given.size() != input.type.shape.size()) return mismatch();
        for (std::size_t d = 0; d < given.size(); ++d) {
            const Dim& declared = input.type.shape[d];
            if (!declared.is_symbolic()) {
                if (declared.size() != given[d]) return mismatch();
                continue;
            }
            if (given[d] < declared.min_size())
                return invalid("input '{}': {} (dimension {}) is {}; at least {} is needed", input.name,
                               declared.str(), d, given[d], declared.min_size());
            if (given[d] > declared.max_size())
                return invalid("input '{}': {} (dimension {}) is {}; at most {} is possible", input.name,
                               declared.str(), d, given[d], declared.max_size());
            // Inputs share their dimensions: those of a decoder's caches are dozens.
            const auto again = std::ranges::find(known, declared, [](const auto& k) { return *k.first; });
            if (again != known.end() && again->second == given[d]) continue;
            known.emplace_back(&declared, given[d]);
            auto [it, fresh] = bindings.try_emplace(declared.text(), given[d]);
            if (!fresh && it->second != given[d])
                return invalid("input '{}': dimension {} gives {} = {}, another input gave {}", input.name, d,
                               declared.str(), given[d], it->second);
        }
    }
    HR_TRY(bind_names_of_lines(graph, bindings));
    return bindings;
}

}  // namespace headrace
