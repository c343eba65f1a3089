#include "doors/onnx/reading/signature.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "base/edit_distance.h"
#include "doors/onnx/reading/fitting_extents.h"

namespace headrace::onnx {
namespace {

constexpr std::size_t kNoBound = std::numeric_limits<std::size_t>::max();

/// The part before the separator, which is taken from the text.
std::string_view part_of(std::string_view& text, std::string_view separator) {
    const std::size_t at = text.find(separator);
    const std::string_view part = text.substr(0, at);
    text.remove_prefix(at == std::string_view::npos ? text.size() : at + separator.size());
    return part;
}

std::int64_t number_of(std::string_view digits) {
    std::int64_t number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return number;
}

/// The part for the node's operator set: the last one that begins with it or before it.
std::string_view form_for(std::int64_t opset, std::string_view signature) {
    std::string_view found = part_of(signature, "; ");
    while (!signature.empty()) {
        std::string_view form = part_of(signature, "; ");
        if (number_of(part_of(form, ": ")) > opset) break;
        found = form;
    }
    return found;
}

/// "1..3", "2" or "1..".
struct Bounds {
    std::size_t least, most;

    explicit Bounds(std::string_view text) {
        const bool is_range = text.find("..") != std::string_view::npos;
        least = static_cast<std::size_t>(number_of(part_of(text, "..")));
        most = !is_range ? least : text.empty() ? kNoBound : static_cast<std::size_t>(number_of(text));
    }
    std::string str() const {
        if (most == kNoBound) return fmt::format("at least {}", least);
        return least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most);
    }
};

std::string_view type_name_of(const AttributeValue& value) {
    constexpr std::array<std::string_view, 9> kNames{"int",     "float",  "string", "ints", "floats",
                                                     "strings", "tensor", "graph",  "type"};
    static_assert(kNames.size() == std::variant_size_v<AttributeValue>);
    return kNames[value.index()];
}

template <class... Args>
void refuse_node_if(bool condition, fmt::format_string<Args...> format, Args&&... args) {
    if (condition)
        throw RefusedForAllExtents(fmt::format(format, std::forward<Args>(args)...), Invalid("").remedy(),
                                   Code::invalid_argument);
}

void check_count(const Node& node, std::string_view what, const Bounds& bounds, std::size_t count) {
    refuse_node_if(count < bounds.least || count > bounds.most,
                   "it has {} {}{}; {} has {} in this operator set", count, what, count == 1 ? "" : "s",
                   node.op, bounds.str());
}

/// How many there are without those that are left out at the end.
template <class List, class IsThere>
std::size_t count_of(const List& list, IsThere is_there) {
    const auto last = std::find_if(list.rbegin(), list.rend(), is_there);
    return static_cast<std::size_t>(list.rend() - last);
}

/// What the attributes may be, for messages.
std::string shown(const Node& node, std::string_view attributes) {
    if (attributes.empty()) return fmt::format("{} has none in this operator set", node.op);
    return fmt::format("{} has {} in this operator set", node.op, attributes);
}

/// The attribute of that name in "max float, min float", or none.
std::string_view type_in(std::string_view attributes, std::string_view name) {
    while (!attributes.empty()) {
        std::string_view type = part_of(attributes, ", ");
        if (part_of(type, " ") == name) return type;
    }
    return {};
}

std::string advice_for(std::string_view attributes, std::string_view name) {
    while (!attributes.empty()) {
        std::string_view known = part_of(attributes, ", ");
        known = part_of(known, " ");
        const std::size_t limit = known.size() / 3 + 1;
        if (edit_distance(name, known, limit) < limit) return fmt::format(" (did you mean {}?)", known);
    }
    return {};
}

void check_attributes(const Node& node, std::string_view attributes) {
    for (const auto& [name, value] : node.attributes) {
        if (name.starts_with("__")) continue;
        const std::string_view type = type_in(attributes, name), own = type_name_of(value);
        refuse_node_if(type.empty(), "attribute '{}' is not known; {}{}", shortened_text(name),
                       shown(node, attributes), advice_for(attributes, name));
        const bool is_whole_float = type == "float" && own == "int";
        refuse_node_if(type != own && !is_whole_float, "attribute '{}' is of the type {}; it must be of {}",
                       name, own, type);
    }
}

}  // namespace

void check_signature(const Node& node, std::string_view signature) {
    std::string_view attributes = form_for(node.opset, signature);
    std::string_view counts = part_of(attributes, ", ");
    const Bounds inputs(part_of(counts, " -> ")), outputs(counts);
    const auto is_given = [](const auto& x) { return !is_missing(Value(x)); };
    const std::size_t given =
        node.values.empty() ? count_of(node.inputs, is_given) : count_of(node.values, is_given);
    // One that is left out at the end counts where there have to be more.
    check_count(node, "input", inputs, std::max(given, std::min(node.inputs.size(), inputs.least)));
    const std::size_t wanted = count_of(node.outputs, [](const auto& name) { return !name.empty(); });
    check_count(node, "output", outputs, std::max(wanted, std::min(node.outputs.size(), outputs.least)));
    check_attributes(node, attributes);
}

}  // namespace headrace::onnx
