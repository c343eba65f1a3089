#include "headrace/graph_view.h"

#include "doors/webnn/state.h"

namespace headrace::webnn {
namespace {

MLValueView view_value(const std::shared_ptr<const Graph>& graph, const Value& value) {
    MLValueView v{.kind = static_cast<MLValueKind>(value.kind),
                  .dataType = value.type.dtype,
                  .shape = to_extents(value.type.shape),
                  .name = value.name};
    static_assert(static_cast<int>(ValueKind::result) == static_cast<int>(MLValueKind::result));
    if (value.constant && value.type.format != BlockFormat::plain) {
        auto values = std::make_shared<std::vector<float>>(static_cast<std::size_t>(value.type.elements()));
        dequantize(value.type.format, value.constant->bytes.data(), value.type.elements(), values->data());
        v.bytes = std::as_bytes(std::span(*values));
        v.owner = std::move(values);
    } else if (value.constant) {
        v.bytes = value.constant->bytes;
        // The graph keeps the constant, and that its owner.
        v.owner = std::shared_ptr<const void>(graph, value.constant.get());
    }
    return v;
}

/// The attributes that have a value, as options.
MLOptions view_attributes(const Node& node) {
    MLOptions options;
    if (node.op->fields.empty()) return options;
    const std::vector<AttrValue> values = node.op->attr_values(node.attrs.get());
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::string name(node.op->fields[i].name);
        std::visit(
            [&]<class T>(const T& value) {
                if constexpr (std::same_as<T, Shape>)
                    options.emplace_back(name, to_extents(value));
                else if constexpr (!std::same_as<T, std::monostate> && !std::same_as<T, GraphPtr>)
                    options.emplace_back(name, value);
            },
            values[i]);
    }
    return options;
}

}  // namespace

MLGraphView view(const std::shared_ptr<const Graph>& graph) {
    MLGraphView v{.inputs = graph->inputs, .outputs = graph->outputs};
    for (const Value& value : graph->values) v.values.push_back(view_value(graph, value));
    for (const Node& node : graph->nodes)
        v.nodes.push_back({.op = std::string(node.op->name),
                           .label = node.label,
                           .attributes = view_attributes(node),
                           .inputs = node.inputs,
                           .outputs = node.outputs});
    return v;
}

MLGraphView view(const MLGraph& graph) { return view(graph.state()->graph); }

std::vector<std::vector<MLDimension>> input_shapes(const MLGraph& graph) {
    const Graph& compiled = graph.executable().graph();
    std::vector<std::vector<MLDimension>> shapes;
    for (const ValueId id : compiled.inputs) shapes.push_back(to_extents(compiled.value(id).type.shape));
    return shapes;
}

std::vector<std::vector<MLDimension>> output_shapes(const MLGraph& graph) {
    const Graph& compiled = graph.executable().graph();
    std::vector<std::vector<MLDimension>> shapes;
    for (const auto& [name, id] : compiled.outputs)
        shapes.push_back(to_extents(compiled.value(id).type.shape));
    return shapes;
}

}  // namespace headrace::webnn
