#include <optional>
#include <variant>
#include <vector>

#include "ops/op_name.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace headrace {
namespace {

using Extents = std::vector<std::int64_t>;

bool is_zero(const AttrValue& value) {
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return *whole == 0;
    if (const auto* natural = std::get_if<std::uint64_t>(&value)) return *natural == 0;
    const auto* real = std::get_if<double>(&value);
    return real && *real == 0;
}

/// The margin that a pad of zeros gives an image, as a convolution's padding; nullopt for other pads.
/// `layout` is the image's, such as "nchw".
std::optional<Extents> margin(const Node& pad, std::string_view layout) {
    if (attr<std::string>(pad, "mode") != "constant" || !is_zero(attr_value(pad, "value")))
        return std::nullopt;
    const Shape before = attr<Shape>(pad, "beginning_padding"), after = attr<Shape>(pad, "ending_padding");
    Extents padding(4);
    for (std::size_t axis = 0; axis < layout.size(); ++axis) {
        if (before[axis].is_symbolic() || after[axis].is_symbolic()) return std::nullopt;
        const std::int64_t first = before[axis].size(), last = after[axis].size();
        const bool is_row = layout[axis] == 'h', is_column = layout[axis] == 'w';
        if (first < 0 || last < 0 || (!is_row && !is_column && (first > 0 || last > 0))) return std::nullopt;
        if (is_row || is_column) padding[is_row ? 0 : 2] = first, padding[is_row ? 1 : 3] = last;
    }
    return padding;
}

/// The convolution's attributes with the margin in its padding; nullopt where a window would lie in zeros
/// alone, which kernels need not be made for.
std::optional<NamedAttrs> with_padding(const Graph& graph, const Node& conv, const Extents& margin) {
    const auto filter = attr<std::string>(conv, "filter_layout");
    const Shape& window = graph.value(conv.inputs[1]).type.shape;
    const auto dilations = attr<Extents>(conv, "dilations");
    NamedAttrs attrs = named_attrs(conv);
    for (auto& [name, value] : attrs) {
        if (name != "padding") continue;
        auto& padding = std::get<Extents>(value);
        for (std::size_t side = 0; side < padding.size(); ++side) {
            padding[side] += margin[side];
            const Dim& extent = window[filter.find(side < 2 ? 'h' : 'w')];
            if (extent.is_symbolic() || padding[side] > (extent.size() - 1) * dilations[side / 2])
                return std::nullopt;
        }
    }
    return attrs;
}

/// Lets a convolution have the zeros around its image that a pad before it made, as frameworks write them
/// that pad unevenly. Other devices' convolutions have the same margin on opposite sides.
Result<Counts> absorb_pads(Graph& graph, const PassContext& context) {
    auto uses = count_uses(graph);
    std::vector<bool> keep(graph.nodes.size(), true);
    std::int64_t absorbed = 0;
    for (Node& node : graph.nodes) {
        if (!context.runs_on_cpu || !is(node, "conv2d")) continue;
        const ValueId padded = node.inputs[0];
        const Node* pad = producer(graph, padded, "pad");
        if (!pad) continue;
        const auto zeros = margin(*pad, attr<std::string>(node, "input_layout"));
        const auto attrs = zeros ? with_padding(graph, node, *zeros) : std::nullopt;
        if (!attrs) continue;
        HR_ASSIGN(node.attrs, node.op->make_attrs(*attrs));
        node.inputs[0] = pad->inputs[0];
        ++absorbed;
        if (--uses[padded] > 0) continue;
        keep[static_cast<std::size_t>(graph.value(padded).producer)] = false;
    }
    graph.compact(keep);
    return Counts{{"pads_absorbed", absorbed}};
}

}  // namespace

Pass absorb_pads_pass() {
    return {.name = "absorb_pads",
            .summary = "lets convolutions pad their images themselves",
            .run = &absorb_pads,
            .after = {"eliminate_no_ops"}};
}

}  // namespace headrace
