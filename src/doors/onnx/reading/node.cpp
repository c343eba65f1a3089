#include "doors/onnx/reading/node.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "doors/onnx/reading/refused.h"

namespace headrace::onnx {
namespace {

constexpr const char* kFixDimensions =
    "Where the model computes it from dimensions, fix those with dimensions={...} (--dimension NAME=N); "
    "otherwise "
    "make it an initializer";
constexpr const char* kFixNumber =
    "Where the model computes it from dimensions, fix those with dimensions={...} (--dimension NAME=N)";

std::string_view form_of(const AttributeValue& value) {
    constexpr std::array<std::string_view, 9> kForms{
        "an integer", "a float", "a text", "a list of integers", "a list of floats", "a list of texts",
        "a tensor",   "a graph", "a type"};
    return kForms[value.index()];
}

template <class T>
const T& as(std::string_view name, const AttributeValue& value, std::string_view wanted) {
    const T* found = std::get_if<T>(&value);
    invalid_if(found == nullptr, "attribute '{}' is {}; it must be {}", name, form_of(value), wanted);
    return *found;
}

}  // namespace

std::string Node::title() const {
    const std::string named = name.empty()
                                  ? fmt::format("node of output '{}'", outputs.empty() ? "" : outputs[0])
                                  : fmt::format("node '{}'", name);
    return fmt::format("{} ({}, {} opset {})", named, op, domain.empty() ? "ai.onnx" : domain, opset);
}

std::string Node::short_title() const {
    return fmt::format("{} '{}'", op, !name.empty() ? name : outputs.empty() ? "" : outputs[0]);
}

Operand Node::optional(std::size_t index) const {
    if (index < values.size() && !is_tensor(values[index]))
        throw Invalid(fmt::format("input {} is {}; it must be a tensor", index, kind_of(values[index])));
    return index < inputs.size() ? inputs[index] : nullptr;
}

Value Node::value(std::size_t index) const {
    if (index < values.size()) return values[index];
    return index < inputs.size() ? inputs[index] : nullptr;
}

Operand Node::operand(std::size_t index) const {
    Operand found = optional(index);
    invalid_if(!found, "input {} is missing", index);
    return found;
}

Operand Node::known_operand(std::size_t index, std::string_view what) const {
    const Operand x = operand(index);
    if (x->is_told())
        throw Refused(
            fmt::format("{} (input {}) is known only at run time; it must be a constant or follow from "
                        "the shapes of tensors",
                        what, index),
            kFixDimensions);
    return x;
}

Shape Node::dims(std::size_t index, std::string_view what) const {
    const Operand x = known_operand(index, what);
    Shape list;
    for (std::int64_t i = 0; i < x->known->count(); ++i) {
        if (x->has_numbers()) {
            list.emplace_back(x->integer(i));
            continue;
        }
        const Item item = x->item(i);
        invalid_if(!item.is_whole(), "{} (input {}) is {}, no whole number", what, index, item.str());
        list.push_back(item.above);
    }
    return list;
}

std::vector<std::int64_t> Node::integers(std::size_t index, std::string_view what) const {
    std::vector<std::int64_t> list;
    for (const Dim& d : dims(index, what)) {
        if (d.is_symbolic())
            throw Refused(
                fmt::format("{} (input {}) is {}, which is known only at run time", what, index, d.str()),
                "Fix the dimensions with dimensions={...} (--dimension NAME=N)");
        list.push_back(d.size());
    }
    return list;
}

Number Node::number(std::size_t index, std::string_view what) const {
    const Operand x = known_operand(index, what);
    if (x->known->count() != 1 || !x->has_numbers())
        throw Refused(fmt::format("{} (input {}) must be one number, not {}", what, index,
                                  x->known->count() == 1 ? x->item(0).str()
                                                         : fmt::format("{} of them", x->known->count())),
                      kFixNumber);
    return x->number(0);
}

std::optional<std::vector<std::int64_t>> Node::list_at(std::string_view attribute_name, std::size_t index,
                                                       std::string_view what) const {
    if (has(attribute_name)) return integer_list(attribute_name);
    if (!optional(index)) return std::nullopt;
    return integers(index, what);
}

const AttributeValue* Node::attribute(std::string_view wanted) const {
    for (const auto& [key, value] : attributes)
        if (key == wanted) return &value;
    return nullptr;
}

void Node::set(std::string_view key, AttributeValue value) {
    remove(key);
    attributes.emplace_back(std::string(key), std::move(value));
}

void Node::remove(std::string_view key) {
    std::erase_if(attributes, [&](const auto& entry) { return entry.first == key; });
}

std::int64_t Node::integer(std::string_view key, std::int64_t otherwise) const {
    const AttributeValue* found = attribute(key);
    return found ? as<std::int64_t>(key, *found, "an integer") : otherwise;
}

std::int64_t Node::integer(std::string_view key) const {
    invalid_if(!has(key), "attribute '{}' is missing", key);
    return integer(key, 0);
}

double Node::real(std::string_view key, double otherwise) const {
    const AttributeValue* found = attribute(key);
    if (!found) return otherwise;
    if (const auto* whole = std::get_if<std::int64_t>(found)) return static_cast<double>(*whole);
    return as<double>(key, *found, "a float");
}

std::string Node::text(std::string_view key, std::string_view otherwise) const {
    const AttributeValue* found = attribute(key);
    return found ? as<std::string>(key, *found, "a text") : std::string(otherwise);
}

std::optional<std::vector<std::int64_t>> Node::integer_list(std::string_view key) const {
    const AttributeValue* found = attribute(key);
    if (!found) return std::nullopt;
    return as<std::vector<std::int64_t>>(key, *found, "a list of integers");
}

std::optional<std::vector<double>> Node::real_list(std::string_view key) const {
    const AttributeValue* found = attribute(key);
    if (!found) return std::nullopt;
    return as<std::vector<double>>(key, *found, "a list of floats");
}

std::optional<std::vector<std::string>> Node::text_list(std::string_view key) const {
    const AttributeValue* found = attribute(key);
    if (!found) return std::nullopt;
    return as<std::vector<std::string>>(key, *found, "a list of texts");
}

Operand Node::tensor(std::string_view key) const {
    const AttributeValue* found = attribute(key);
    return found ? as<Operand>(key, *found, "a tensor") : nullptr;
}

std::shared_ptr<const Branch> Node::branch(std::string_view key) const {
    const AttributeValue* found = attribute(key);
    return found ? as<std::shared_ptr<const Branch>>(key, *found, "a graph") : nullptr;
}

std::vector<std::int64_t> axes_of(const std::vector<std::int64_t>& axes, std::int64_t rank) {
    std::vector<std::int64_t> found;
    for (std::int64_t axis : axes) {
        invalid_if(axis < -rank || axis >= rank, "axis {} is outside the {} dimensions of the input", axis,
                   rank);
        found.push_back(axis < 0 ? axis + rank : axis);
    }
    std::vector<std::int64_t> sorted = found;
    std::ranges::sort(sorted);
    invalid_if(std::ranges::adjacent_find(sorted) != sorted.end(), "the axes [{}] have one twice",
               fmt::join(axes, ", "));
    return found;
}

ElementType type_named(std::int64_t number, std::string_view what) {
    const auto small = static_cast<std::int32_t>(std::clamp<std::int64_t>(number, INT32_MIN, INT32_MAX));
    const auto type = element_type(small);
    refuse_if(!type, "{} is {}; there are {}", what, onnx_name(small), known_types());
    return *type;
}

}  // namespace headrace::onnx
