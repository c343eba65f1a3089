#include "passes/image_orders.h"

#include <algorithm>
#include <optional>

#include "ops/catalog.h"
#include "passes/rewrite.h"

namespace headrace {
namespace {

constexpr int kRank = 4;
using List = std::vector<std::int64_t>;

/// The attribute of an op with LayoutRule::channels that says where channels are.
std::string_view layout_attribute(const OpDef& op) {
    for (const Field& f : op.fields)
        if (f.name == "input_layout") return f.name;
    return "layout";
}

ImageOrder order_called(std::string_view layout) {
    return layout == "nchw" ? ImageOrder::first : ImageOrder::last;
}
std::string_view name_of(ImageOrder order) { return order == ImageOrder::first ? "nchw" : "nhwc"; }

ImageOrder order_of_channels(const Node& node) {
    return order_called(attr<std::string>(node, layout_attribute(*node.op)));
}

/// That of the result and of what is added to it.
ImageOrder order_of_result(const Node& node) {
    for (const Field& f : node.op->fields) {
        if (f.name != "output_layout") continue;
        const AttrValue given = attr_value(node, f.name);
        if (const auto* layout = std::get_if<std::string>(&given)) return order_called(*layout);
    }
    return order_of_channels(node);
}

/// The order of the result of a transposition that swaps the two orders.
ImageOrder reordered(const Graph& graph, const Node& node) {
    if (!is(node, "transpose")) return ImageOrder::unknown;
    const List axes = permutation_of(graph, node);
    for (const ImageOrder to : {ImageOrder::first, ImageOrder::last})
        if (std::ranges::equal(axes, permutation_to(to))) return to;
    return ImageOrder::unknown;
}

/// The images among the operands of an op with LayoutRule::channels.
bool is_channels_operand(const Node& node, std::size_t i) {
    return i == 0 || node.op->operands[std::min(i, node.op->operands.size() - 1)].name == "residual";
}

bool must_follow(const Node& node, std::size_t i) {
    if (node.op->layout == LayoutRule::channels) return is_channels_operand(node, i);
    return node.op->layout == LayoutRule::axes && i == 0 && !node.op->variadic;
}

}  // namespace

ImageOrders::ImageOrders(const Graph& graph)
    : graph_(graph), orders_(graph.values.size(), ImageOrder::unknown) {
    for (bool changes = true; changes;) {
        changes = false;
        for (const Node& node : graph.nodes) changes = visit(node) || changes;
        for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node)
            changes = visit(*node) || changes;
    }
}

bool ImageOrders::may_be_image(ValueId id) const {
    return id != kNoValue && graph_.value(id).type.rank() == kRank &&
           graph_.value(id).kind != ValueKind::constant;
}

bool ImageOrders::assign(ValueId id, ImageOrder order) {
    if (!may_be_image(id) || orders_[id] != ImageOrder::unknown) return false;
    orders_[id] = order;
    return true;
}

bool ImageOrders::assign_all(const Node& node, ImageOrder order) {
    bool changes = false;
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
        if (follows(node, i)) changes = assign(node.inputs[i], order) || changes;
    for (ValueId id : node.outputs) changes = assign(id, order) || changes;
    return changes;
}

bool ImageOrders::visit(const Node& node) {
    if (const ImageOrder to = reordered(graph_, node); to != ImageOrder::unknown) {
        bool changes = of(node.outputs[0]) == to && assign(node.inputs[0], other(to));
        return (of(node.inputs[0]) == other(to) && assign(node.outputs[0], to)) || changes;
    }
    if (node.op->layout == LayoutRule::row_major) return false;
    if (node.op->layout == LayoutRule::channels) {
        const bool changes = assign(node.inputs[0], order_of_channels(node));
        return assign_all(node, order_of_result(node)) || changes;
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
        if (follows(node, i) && of(node.inputs[i]) != ImageOrder::unknown)
            return assign_all(node, of(node.inputs[i]));
    for (ValueId id : node.outputs)
        if (of(id) != ImageOrder::unknown) return assign_all(node, of(id));
    return false;
}

bool ImageOrders::is_stem(const Node& node) const {
    constexpr std::int64_t kFewChannels = 4;
    if (!is(node, "conv2d") && !is(node, "fused_conv2d")) return false;
    if (of(node.inputs[0]) != ImageOrder::first || order_of_channels(node) != ImageOrder::first) return false;
    return attr<std::int64_t>(node, "groups") == 1 &&
           graph_.value(node.inputs[0]).type.shape[1].max_size() <= kFewChannels;
}

bool ImageOrders::is_reordering(const Node& node) const {
    const ImageOrder to = reordered(graph_, node);
    return to != ImageOrder::unknown && of(node.outputs[0]) == to && of(node.inputs[0]) == other(to);
}

bool ImageOrders::follows(const Node& node, std::size_t i) const {
    if (!may_be_image(node.inputs[i])) return false;
    switch (node.op->layout) {
        case LayoutRule::row_major: return i == 0 && is_reordering(node);
        case LayoutRule::any: return true;
        case LayoutRule::channels: return is_channels_operand(node, i);
        case LayoutRule::axes: return i == 0 || node.op->variadic;
    }
    return false;
}

ImageOrder ImageOrders::of_free(const Node& node) const {
    if (node.op->layout == LayoutRule::row_major || !node.op->is_pure()) return ImageOrder::unknown;
    ImageOrder order = ImageOrder::unknown;
    const auto agrees = [&](ValueId id) {
        if (order == ImageOrder::unknown) order = of(id);
        return of(id) == order;
    };
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
        if (follows(node, i) && !agrees(node.inputs[i])) return ImageOrder::unknown;
    for (ValueId id : node.outputs)
        if (graph_.value(id).type.rank() == kRank && !agrees(id)) return ImageOrder::unknown;
    // Constants are no images; who reads one in an image's place stays as it is.
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
        if (node.inputs[i] != kNoValue && must_follow(node, i) && !follows(node, i))
            return ImageOrder::unknown;
    const bool is_aligned = node.op->layout != LayoutRule::channels || order == order_of_channels(node);
    return is_aligned ? order : ImageOrder::unknown;
}

namespace {

/// Where dimension `axis` of the other order lies in `to`.
std::int64_t axis_in(ImageOrder to, std::int64_t axis) {
    const auto from = permutation_to(to);
    return std::find(from.begin(), from.end(), axis < 0 ? axis + kRank : axis) - from.begin();
}

/// Whether the dimensions that a reduction keeps stay in the same order among themselves.
bool keeps_order(const List& axes, ImageOrder to) {
    std::int64_t last = -1;
    for (std::int64_t axis = 0; axis < kRank; ++axis) {
        if (std::find(axes.begin(), axes.end(), axis) != axes.end()) continue;
        if (axis_in(to, axis) < last) return false;
        last = axis_in(to, axis);
    }
    return true;
}

/// Attributes `axis` and `axes` name dimensions; where an op has neither, lists have a value for each one.
std::optional<NamedAttrs> axes_in_order(const Node& node, ImageOrder to) {
    NamedAttrs attrs = named_attrs(node);
    bool names_axes = false, drops_axes = false;
    for (auto& [name, value] : attrs) {
        names_axes = names_axes || name == "axis" || name == "axes";
        drops_axes = drops_axes || (name == "keep_dimensions" && !std::get<bool>(value));
    }
    for (auto& [name, value] : attrs) {
        if (name == "axis") {
            auto* axis = std::get_if<std::int64_t>(&value);
            if (!axis) return std::nullopt;
            *axis = axis_in(to, *axis);
        } else if (name == "axes") {
            auto* axes = std::get_if<List>(&value);
            if (!axes) return std::nullopt;
            if (drops_axes && !keeps_order(*axes, to)) return std::nullopt;
            for (std::int64_t& axis : *axes) axis = axis_in(to, axis);
        } else if (!names_axes) {
            const auto permute = [&](const auto& list) {
                auto permuted = list;
                for (std::size_t i = 0; i < list.size(); ++i) permuted[i] = list[permutation_to(to)[i]];
                return permuted;
            };
            if (const auto* list = std::get_if<List>(&value); list && list->size() == kRank)
                value = permute(*list);
            else if (const auto* shape = std::get_if<Shape>(&value); shape && shape->size() == kRank)
                value = permute(*shape);
        }
    }
    return attrs;
}

}  // namespace

Result<bool> turn_attrs(Node& node, ImageOrder to, bool is_stem) {
    std::optional<NamedAttrs> attrs = named_attrs(node);
    if (is_stem) {
        std::erase_if(*attrs, [](const auto& attr) { return attr.first == "output_layout"; });
        attrs->emplace_back("output_layout", std::string(name_of(to)));
        node.op = &catalog_op("fused_conv2d");
    } else if (node.op->layout == LayoutRule::channels) {
        for (auto& [name, value] : *attrs)
            if (name == layout_attribute(*node.op)) value = std::string(name_of(to));
    } else if (node.op->layout == LayoutRule::axes) {
        attrs = axes_in_order(node, to);
        if (!attrs) return false;
    }
    HR_ASSIGN(node.attrs, node.op->make_attrs(*attrs));
    return true;
}

}  // namespace headrace
