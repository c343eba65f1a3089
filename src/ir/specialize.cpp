#include "ir/specialize.h"

#include <algorithm>

namespace headrace {

namespace {

void bind_shape(Shape& shape, const SymbolBindings& bindings) {
    for (Dim& d : shape) d = bound(d, bindings);
}

/// An extent that an op computed from symbols is a symbol as well; later attributes may name it.
void bind_derived(const Shape& symbolic, const Shape& concrete, SymbolBindings& bindings) {
    for (std::size_t d = 0; d < symbolic.size() && d < concrete.size(); ++d)
        if (symbolic[d].is_symbolic() && !concrete[d].is_symbolic())
            bindings.try_emplace(symbolic[d].text(), concrete[d].size());
}

bool is_open(const AttrValue& value) {
    const auto* shape = std::get_if<Shape>(&value);
    return shape && std::ranges::any_of(*shape, [](const Dim& d) { return d.is_symbolic(); });
}

/// Attributes may hold symbols too (reshape's new shape); rebuild those that do.
Result<AttrBox> bind_attrs(const Node& node, const SymbolBindings& bindings) {
    if (std::ranges::none_of(node.op->fields, [](const Field& f) { return f.kind == AttrKind::shape; }))
        return node.attrs;
    std::vector<AttrValue> values = node.op->attr_values(node.attrs.get());
    if (std::ranges::none_of(values, is_open)) return node.attrs;
    NamedAttrs named;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (auto* shape = std::get_if<Shape>(&values[i])) bind_shape(*shape, bindings);
        named.emplace_back(node.op->fields[i].name, std::move(values[i]));
    }
    return node.op->make_attrs(named);
}

/// Types and attributes of the inputs, the states and the nodes for which `of` holds, in numbers.
Status specialize_nodes(const Graph& graph, SymbolBindings& bindings, const std::vector<bool>* of,
                        Graph& result) {
    const auto bind_value = [&](ValueId id) {
        Shape shape = graph.value(id).type.shape;
        bind_shape(shape, bindings);
        result.value(id).type.shape = std::move(shape);
    };
    for (ValueId id : graph.inputs) {
        bind_value(id);
        if (auto status = result.value(id).type.check(); !status.ok())
            return status.error().within(fmt::format("input '{}'", graph.value(id).name));
    }
    for (ValueId id : graph.states) bind_value(id);
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
        if (of && !(*of)[n]) continue;
        const Node& symbolic = graph.nodes[n];
        Node& node = result.nodes[n];
        HR_ASSIGN(node.attrs, bind_attrs(symbolic, bindings));
        const auto types = result.operand_types(node);
        auto inferred = check_and_infer(*node.op, Operands(types), node.attrs.get());
        if (!inferred.ok()) return inferred.error().within(node.title());
        for (std::size_t i = 0; i < node.outputs.size(); ++i) {
            bind_derived(graph.value(node.outputs[i]).type.shape, inferred.value()[i].shape, bindings);
            result.value(node.outputs[i]).type = std::move(inferred.value()[i]);
        }
    }
    return success();
}

}  // namespace

SymbolUses::SymbolUses(const Graph& graph) {
    for (const Node& node : graph.nodes) {
        Uses& uses = nodes_.emplace_back();
        for (const TensorType* type : graph.operand_types(node))
            if (type) add(uses, type->shape);
        for (ValueId id : node.outputs) add(uses, graph.value(id).type.shape);
        for (const AttrValue& value : node.op->attr_values(node.attrs.get()))
            if (const auto* shape = std::get_if<Shape>(&value)) add(uses, *shape);
    }
    for (const Condition& condition : graph.conditions)
        add(conditions_.emplace_back(), {condition.left, condition.right});
}

void SymbolUses::add(Uses& uses, const Shape& shape) {
    for (const Dim& d : shape) {
        if (!d.is_symbolic()) continue;
        for (const std::string& name : d.expression().names()) {
            const auto at = std::ranges::find(names_, name);
            const auto index = static_cast<std::size_t>(at - names_.begin());
            if (at == names_.end()) names_.push_back(name);
            if (std::ranges::find(uses, index) == uses.end()) uses.push_back(index);
        }
    }
}

std::vector<bool> SymbolUses::changed_symbols(const SymbolBindings& before, const SymbolBindings& now) const {
    std::vector<bool> changed;
    for (const std::string& name : names_) {
        const auto old = before.find(name), value = now.find(name);
        changed.push_back(old == before.end() || value == now.end() || old->second != value->second);
    }
    return changed;
}

namespace {

std::vector<bool> of_uses(const std::vector<std::vector<std::size_t>>& all,
                          const std::vector<bool>& changed) {
    std::vector<bool> result;
    result.reserve(all.size());
    for (const auto& uses : all)
        result.push_back(std::ranges::any_of(uses, [&](std::size_t name) { return changed[name]; }));
    return result;
}

}  // namespace

std::vector<bool> SymbolUses::changed_nodes(const SymbolBindings& before, const SymbolBindings& now) const {
    return of_uses(nodes_, changed_symbols(before, now));
}

std::vector<bool> SymbolUses::changed_conditions(const SymbolBindings& before,
                                                 const SymbolBindings& now) const {
    return of_uses(conditions_, changed_symbols(before, now));
}

Result<Graph> specialize(const Graph& graph, const SymbolBindings& bindings) {
    Graph result = graph;
    for (const Condition& condition : graph.conditions) HR_TRY(condition.check(bindings));
    SymbolBindings all = bindings;
    HR_TRY(specialize_nodes(graph, all, nullptr, result));
    for (const Value& v : result.values)
        if (!v.type.is_concrete())
            return invalid("shape {} of '{}' has a symbol that no input binds", str(v.type.shape), v.name);
    for (const Condition& condition : graph.conditions) HR_TRY(condition.check(all));
    result.conditions.clear();
    return result;
}

Status specialize_changes(const Graph& graph, const SymbolBindings& bindings, Graph& concrete,
                          const std::vector<bool>& changed_nodes,
                          const std::vector<bool>& changed_conditions) {
    SymbolBindings all = bindings;
    const auto check = [&]() -> Status {
        for (std::size_t i = 0; i < graph.conditions.size(); ++i)
            if (changed_conditions[i]) HR_TRY(graph.conditions[i].check(all));
        return success();
    };
    HR_TRY(check());
    HR_TRY(specialize_nodes(graph, all, &changed_nodes, concrete));
    return check();
}

}  // namespace headrace
