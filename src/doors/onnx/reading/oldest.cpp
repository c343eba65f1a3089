#include "doors/onnx/reading/oldest.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <set>

#include "doors/onnx/reading/refused.h"

namespace headrace::onnx {
namespace {

constexpr std::int64_t kFirst = 7;  // the set in which shapes broadcast as NumPy's
constexpr double kOldSeluAlpha = 1.6732, kOldSeluGamma = 1.0507;

/// Where the second operand broadcasts, its axes are those from `axis` on, or else the last ones.
Node aligned(OpWriter& g, const Node& node, Node made) {
    const Operand a = node.x(), b = node.operand(1);
    made.remove("axis");
    const std::int64_t rank = g.rank(a), own = g.rank(b);
    std::int64_t axis = 0;
    if (node.op == "PRelu") {
        const bool is_of_channels = own == 1 && !g.shape(b)[0].is(1) && rank > 1;
        axis = is_of_channels ? 1 : rank - own;
    } else if (node.integer("broadcast", 0) == 0) {
        return made;
    } else {
        axis = node.integer("axis", rank - own);
    }
    axis += axis < 0 ? rank : 0;
    invalid_if(axis < 0 || axis > rank - own, "axis is {} for operands of {} and {} dimensions",
               node.integer("axis", axis), rank, own);
    made.inputs = {a, g.add_axes(b, rank - own - axis)};
    return made;
}

Node with_type_number(OpWriter& /*g*/, const Node& node, Node made) {
    const AttributeValue* to = node.attribute("to");
    const auto* name = to ? std::get_if<std::string>(to) : nullptr;
    if (!name) return made;
    std::string upper = *name;
    std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
    const auto number = onnx_number(upper);
    refuse_if(!number, "the target type is '{}'; there are {}", *name, known_types());
    made.set("to", std::int64_t{*number});
    return made;
}

Node with_axis(OpWriter& /*g*/, const Node& node, Node made) {
    if (!made.has("axis")) made.set("axis", std::int64_t{node.opset < 4 ? 1 : 0});
    return made;
}

/// Set 1 repeats along one axis.
Node with_repetitions(OpWriter& g, const Node& node, Node made) {
    if (node.opset >= 6) return made;
    std::vector<std::int64_t> counts(static_cast<std::size_t>(g.rank(node.x())), 1);
    const int axis = g.axis(node.x(), node.integer_at(2, "the axis"));
    counts.at(static_cast<std::size_t>(axis)) = node.integer_at(1, "the number of tiles");
    made.inputs = {node.x(), known(counts)};
    return made;
}

Node with_scales(OpWriter& /*g*/, const Node& node, Node made) {
    if (node.has("height_scale") && node.has("width_scale"))
        made.set("scales",
                 std::vector<double>{1, 1, node.real("height_scale", 1), node.real("width_scale", 1)});
    made.remove("height_scale");
    made.remove("width_scale");
    if (made.text("mode", "") == "bilinear") made.set("mode", std::string("linear"));
    return made;
}

Node with_old_constants(OpWriter& /*g*/, const Node& node, Node made) {
    if (node.opset >= 6) return made;
    if (!made.has("alpha")) made.set("alpha", kOldSeluAlpha);
    if (!made.has("gamma")) made.set("gamma", kOldSeluGamma);
    return made;
}

Node with_whole_power(OpWriter& /*g*/, const Node& node, Node made) {
    const double p = node.real("p", 2);
    if (p == std::trunc(p)) made.set("p", static_cast<std::int64_t>(p));
    return made;
}

/// An attribute that became the second input.
Node with_shape_input(OpWriter& /*g*/, const Node& node, Node made) {
    const auto shape = node.integer_list("shape");
    made.remove("shape");
    if (shape && made.inputs.size() < 2) made.inputs.push_back(known(*shape));
    return made;
}

using Change = Node (*)(OpWriter&, const Node&, Node);
const std::map<std::string_view, Change> kOldForms{
    {"Cast", &with_type_number},   {"Concat", &with_axis},         {"GlobalLpPool", &with_whole_power},
    {"LpPool", &with_whole_power}, {"Reshape", &with_shape_input}, {"Selu", &with_old_constants},
    {"Tile", &with_repetitions},   {"Upsample", &with_scales}};
const std::set<std::string_view> kAligned{"Add", "Sub", "Mul",   "Div",     "Pow",  "And",
                                          "Or",  "Xor", "Equal", "Greater", "Less", "PRelu"};

}  // namespace

Node modernized(OpWriter& g, const Node& node) {
    if (node.opset >= kFirst || !node.domain.empty()) return node;
    Node made = node;
    made.opset = kFirst;
    for (const char* dropped : {"consumed_inputs", "broadcast", "is_test"}) made.remove(dropped);
    for (auto& [name, value] : made.attributes)
        if (name == "paddings") name = "pads";
    if (kAligned.contains(node.op)) return aligned(g, node, std::move(made));
    const auto change = kOldForms.find(node.op);
    return change == kOldForms.end() ? made : change->second(g, node, std::move(made));
}

}  // namespace headrace::onnx
