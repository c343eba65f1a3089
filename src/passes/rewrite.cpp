#include "passes/rewrite.h"

#include <algorithm>
#include <cmath>

#include "ops/arithmetic.h"

namespace headrace {

std::vector<std::int32_t> count_uses(const Graph& graph) {
    std::vector<std::int32_t> uses(graph.values.size());
    for (const Node& node : graph.nodes)
        for (ValueId id : node.inputs)
            if (id != kNoValue) ++uses[id];
    for (const auto& [name, id] : graph.outputs) ++uses[id];
    return uses;
}

std::vector<NodeId> state_writers(const Graph& graph) {
    std::vector<NodeId> writers(graph.values.size(), -1);
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        const Node& node = graph.nodes[i];
        if (!node.op->is_pure()) writers[node.inputs[node.op->writes_state]] = static_cast<NodeId>(i);
    }
    return writers;
}

const Node* producer(const Graph& graph, ValueId id, OpName op) {
    if (id == kNoValue) return nullptr;
    const Value& v = graph.value(id);
    if (v.kind != ValueKind::result || v.output_index != 0) return nullptr;
    const Node& node = graph.node(v.producer);
    return is(node, op) ? &node : nullptr;
}

std::optional<double> clamp_limit(const Node& clamp, std::string_view name) {
    const auto limit = std::visit(
        [](const auto& v) -> double {
            if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(v)>>)
                return static_cast<double>(v);
            return NAN;
        },
        attr_value(clamp, name));
    return std::isnan(limit) ? std::nullopt : std::optional(limit);
}

NamedAttrs named_attrs(const Node& node) {
    NamedAttrs named;
    auto values = node.op->attr_values(node.attrs.get());
    for (std::size_t i = 0; i < values.size(); ++i)
        named.emplace_back(node.op->fields[i].name, std::move(values[i]));
    return named;
}

std::vector<std::int64_t> permutation_of(const Graph& graph, const Node& transpose) {
    const std::int64_t rank = graph.value(transpose.inputs[0]).type.rank();
    const AttrValue given = attr_value(transpose, "permutation");
    std::vector<std::int64_t> axes;
    if (const auto* list = std::get_if<std::vector<std::int64_t>>(&given))
        for (std::int64_t axis : *list) axes.push_back(axis < 0 ? axis + rank : axis);
    else
        for (std::int64_t axis = rank; axis-- > 0;) axes.push_back(axis);
    return axes;
}

std::optional<double> scalar_constant(const Graph& graph, ValueId id) {
    const Value& v = graph.value(id);
    if (v.kind != ValueKind::constant || v.type.elements() != 1 || v.type.format != BlockFormat::plain)
        return std::nullopt;
    const auto of = [&]<class T>() {
        return ops::convert<double>(*reinterpret_cast<const T*>(v.constant->bytes.data()));
    };
    switch (v.type.dtype) {
        case DType::f32: return of.template operator()<float>();
        case DType::f64: return of.template operator()<double>();
        default: return std::nullopt;
    }
}

}  // namespace headrace
