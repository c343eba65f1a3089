#include "doors/onnx/reading/interface.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>

#include "doors/onnx/reading/declared.h"

namespace headrace::onnx {
namespace {

/// Whether a node joins an input along that axis, or cuts it apart there.
bool joins(const NodeMessage& node, std::string_view input, std::int64_t axis, std::int64_t rank) {
    if (node.op == "Shape") return true;
    const auto at = std::ranges::find(node.inputs, input) - node.inputs.begin();
    if (node.op == "Attention") return axis == 2 && (at == 4 || at == 5);  // past keys and values
    if (node.op == "MultiHeadAttention") return axis == 2 && (at == 6 || at == 7);
    if (node.op != "Concat" && node.op != "SplitToSequence") return false;
    std::int64_t own = 0;
    for (const AttributeMessage& a : node.attributes)
        if (a.name == "axis") own = a.integer;
    return rank > 0 && (own % rank + rank) % rank == axis;
}

std::string trimmed(std::string_view text) {
    const auto begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) return "";
    return std::string(text.substr(begin, text.find_last_not_of(' ') - begin + 1));
}

std::vector<std::string> summands(std::string_view text) {
    std::vector<std::string> parts;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t plus = std::min(text.find('+', at), text.size());
        parts.push_back(trimmed(text.substr(at, plus - at)));
        at = plus + 1;
    }
    return parts;
}

/// Digits alone, few enough for an extent.
bool is_decimal(const std::string& text) {
    constexpr std::size_t kMostDigits = 18;
    return !text.empty() && text.size() <= kMostDigits &&
           std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::int64_t checked_size(std::int64_t value, std::string_view name) {
    refuse_if(value < 0, "dimensions['{}'] is {}; it must be a number of at least 0", name, value);
    return value;
}

}  // namespace

Result<std::set<std::string, std::less<>>> perhaps_empty(const GraphMessage& graph) {
    std::unordered_map<std::string_view, const ValueMessage*> inputs;
    for (const ValueMessage& v : graph.inputs) inputs.emplace(v.name, &v);
    std::set<std::pair<std::string_view, std::size_t>> read, other;  // inputs' dimensions
    for (Bytes bytes : graph.nodes) {
        HR_ASSIGN(const NodeMessage node, decode_node(bytes));
        for (std::string_view name : node.inputs) {
            const auto at = inputs.find(name);
            if (at == inputs.end()) continue;
            const auto rank = static_cast<std::int64_t>(at->second->type.shape.size());
            for (std::int64_t axis = 0; axis < rank; ++axis)
                (joins(node, name, axis, rank) ? read : other).emplace(name, static_cast<std::size_t>(axis));
        }
    }
    std::set<std::string, std::less<>> joined, others;
    for (const ValueMessage& v : graph.inputs)
        for (std::size_t axis = 0; axis < v.type.shape.size(); ++axis) {
            const bool is_joined = read.contains({v.name, axis}) && !other.contains({v.name, axis});
            (is_joined ? joined : others).emplace(v.type.shape[axis].name);
        }
    std::erase_if(joined, [&](const std::string& name) { return name.empty() || others.contains(name); });
    return joined;
}

Interface::Interface(OpWriter& g, const std::vector<const ValueMessage*>& inputs, const OnnxOptions& given,
                     std::set<std::string, std::less<>> perhaps_empty)
    : g_(g), given_(given), perhaps_empty_(std::move(perhaps_empty)) {
    for (const ValueMessage* v : inputs)
        for (const DimensionMessage& d : v->type.shape)
            if (!d.name.empty()) named_.emplace(d.name);
}

Operand Interface::input(const ValueMessage& value) {
    if (value.type.kind != TypeMessage::Kind::tensor)
        throw Refused(fmt::format("it is {}; this reader takes tensors", name_of(value.type.kind)));
    const auto type = element_type(value.type.element_type);
    refuse_if(!type, "it is {}; there are {}", onnx_name(value.type.element_type), known_types());
    return g_.input(std::string(value.name), *type, shape_of(value));
}

void Interface::check_dimensions() const {
    std::vector<std::string> unknown;
    for (const auto& [name, size] : given_.dimensions)
        if (!used_.contains(name)) unknown.push_back(name);
    for (const auto& [name, form] : given_.forms)
        if (!used_.contains(name)) unknown.push_back(name);
    if (unknown.empty()) return;
    throw Refused(
        fmt::format("no input has a dimension ['{}']; run-time dimensions: {}", fmt::join(unknown, "', '"),
                    g_.dimensions.empty() ? "none" : fmt::format("{}", fmt::join(g_.dimensions, ", "))),
        "", Code::invalid_argument);
}

Shape Interface::shape_of(const ValueMessage& value) {
    const std::string name(value.name);
    if (const auto form = given_.forms.find(name); form != given_.forms.end()) {
        used_.insert(name);
        const auto* whole = std::get_if<OnnxShape>(&form->second);
        refuse_if(!whole, "dimensions['{}'] is no shape, and the input is a tensor", name);
        return shape_of(*whole, name);
    }
    refuse_if(!value.type.has_shape,
              "its shape is not in the model; give it with dimensions={{'{}': [1, 3, 224, 224]}}", name);
    Shape shape;
    for (std::size_t axis = 0; axis < value.type.shape.size(); ++axis) {
        const DimensionMessage& d = value.type.shape[axis];
        if (d.size) {
            refuse_if(*d.size < 0, "extent {} is {}; give the input's shape with dimensions={{'{}': [...]}}",
                      axis, *d.size, name);
            shape.emplace_back(*d.size);
        } else {
            shape.push_back(dimension(dimension_name(d, name, axis)));
        }
    }
    return shape;
}

Shape Interface::shape_of(const OnnxShape& given, std::string_view name) {
    Shape shape;
    for (const auto& extent : given) {
        if (const auto* size = std::get_if<std::int64_t>(&extent))
            shape.emplace_back(checked_size(*size, name));
        else
            shape.push_back(dimension(std::get<std::string>(extent)));
    }
    return shape;
}

/// A number where one is given. "past + 1" and "past + new" of other dimensions are sums.
Dim Interface::dimension(const std::string& name) {
    if (const auto given = given_.dimensions.find(name); given != given_.dimensions.end()) {
        used_.insert(name);
        return checked_size(given->second, name);
    }
    if (const std::vector<std::string> parts = summands(name); is_sum(parts)) {
        Dim sum = 0;
        for (const std::string& part : parts)
            sum = sum + (is_decimal(part) ? Dim(std::stoll(part)) : dimension(part));
        return sum;
    }
    return Dim::named(name, perhaps_empty_.contains(name) ? 0 : 1);
}

bool Interface::is_sum(const std::vector<std::string>& parts) const {
    const auto is_known = [&](const std::string& part) { return is_decimal(part) || named_.contains(part); };
    return parts.size() > 1 && std::ranges::all_of(parts, is_known) &&
           !std::ranges::all_of(parts, &is_decimal);
}

void Interface::output(std::string_view name, const Operand& value) {
    ValueId id = kNoValue;
    GraphBuilder& builder = g_.builder();
    const auto& add = [&](std::string_view op, const NamedAttrs& attrs) {
        return g_.append(op, {g_.value(value)}, attrs, std::string(name));
    };
    if (value->type == ElementType::boolean)
        id = add("cast", {{"data_type", DType::boolean}});
    else if (value->type == ElementType::bf16)
        id = g_.value(g_.cast(value, ElementType::f32));
    else
        id = add("identity", {});
    value_or_refuse(builder.mark_output(std::string(name), id));
    if (is_carried(value->type) || value->type == ElementType::bf16)
        declared_.emplace(name, name_of(value->type));
    outputs_.push_back({.name = std::string(name), .tensor = std::string(name)});
}

}  // namespace headrace::onnx
