#include "ir/print.h"

#include <cstring>
#include <iterator>
#include <map>

namespace headrace {
namespace {

constexpr std::int64_t kShownElements = 8;

const Value* find(const Graph& graph, ValueId id) {
    return id >= 0 && static_cast<std::size_t>(id) < graph.values.size() ? &graph.value(id) : nullptr;
}

/// `%3`, `%3 "weights"`, `_` for an absent operand, `%9?` for an id out of range.
std::string reference_to(const Graph& graph, ValueId id) {
    if (id == kNoValue) return "_";
    const Value* v = find(graph, id);
    if (!v) return fmt::format("%{}?", id);
    return v->name.empty() ? fmt::format("%{}", id) : fmt::format("%{} \"{}\"", id, v->name);
}

std::string attrs_text(const Node& node) {
    if (!node.op->attr_values) return "";
    const auto values = node.op->attr_values(node.attrs.get());
    std::string text;
    for (std::size_t i = 0; i < values.size() && i < node.op->fields.size(); ++i) {
        const Field& field = node.op->fields[i];
        if (values[i] == field.default_value && !field.required) continue;
        if (field.kind == AttrKind::graph) continue;
        text += fmt::format("{}{}={}", text.empty() ? "" : ", ", field.name, text_of(values[i]));
    }
    return text.empty() ? "" : " {" + text + "}";
}

std::string size_text(std::size_t bytes) {
    if (bytes < 1024) return fmt::format("{} bytes", bytes);
    if (bytes < 1024 * 1024) return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024);
    return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1024 * 1024));
}

template <class T>
std::string element_text(const std::byte* at) {
    T element;  // mapped bytes may be less aligned than T asks
    std::memcpy(&element, at, sizeof(T));
    if constexpr (std::is_class_v<T>)
        return fmt::format("{}", static_cast<float>(element));
    else
        return fmt::format("{}", element);
}

/// The elements of a tiny constant, the size of any other.
std::string content_text(const Value& v) {
    const auto bytes = v.constant->bytes;
    const bool is_readable = v.type.check().ok() && v.type.is_concrete() && bytes.size() == v.type.bytes();
    if (!is_readable || bits_of(v.type.dtype) < 8 || v.type.elements() > kShownElements || bytes.empty())
        return fmt::format("({})", size_text(bytes.size()));
    std::string list;
    visit_dtype(v.type.dtype, [&]<class T>() {
        for (std::size_t i = 0; i < bytes.size(); i += sizeof(T))
            list.append(i ? ", " : "").append(element_text<T>(bytes.data() + i));
    });
    return v.type.rank() == 0 ? "= " + list : "= [" + list + "]";
}

std::string ranges_text(const Shape& shape) {
    std::map<std::string, std::string> ranges;
    for (const Dim& d : shape) {
        if (!d.is_symbolic()) continue;
        ranges[d.str()] = d.max_size() == INT64_MAX
                              ? fmt::format("{} >= {}", d.str(), d.min_size())
                              : fmt::format("{} = {}..{}", d.str(), d.min_size(), d.max_size());
    }
    std::string text;
    for (const auto& [name, range] : ranges) text.append(text.empty() ? "" : ", ").append(range);
    return text.empty() ? "" : "  (" + text + ")";
}

void print_sources(const Graph& graph, std::string& text) {
    const auto line = [&](std::string_view kind, ValueId id) {
        const Value* v = find(graph, id);
        fmt::format_to(std::back_inserter(text), "{:<8} {}", kind, reference_to(graph, id));
        if (v) text += " : " + v->type.str() + ranges_text(v->type.shape);
        if (v && v->constant) text += "  " + content_text(*v);
        text += '\n';
    };
    for (ValueId id : graph.inputs) line("input", id);
    for (ValueId id : graph.states) line("state", id);
    for (std::size_t i = 0; i < graph.values.size(); ++i)
        if (graph.values[i].kind == ValueKind::constant) line("constant", static_cast<ValueId>(i));
}

/// The bodies of a node, each under its attribute's name.
void print_bodies(const Node& node, std::string& text) {
    if (!node.op || node.op->control == Control::none) return;
    const auto values = node.op->attr_values(node.attrs.get());
    for (std::size_t i = 0; i < values.size(); ++i) {
        const auto* body = std::get_if<GraphPtr>(&values[i]);
        if (!body || !*body) continue;
        fmt::format_to(std::back_inserter(text), "    {}:\n", node.op->fields[i].name);
        const std::string inner = print(**body);
        for (std::size_t at = 0; at < inner.size();) {
            const std::size_t end = inner.find('\n', at);
            text.append("        ").append(inner, at, end - at + 1);
            at = end + 1;
        }
    }
}

}  // namespace

std::string print(const Graph& graph, const Node& node) {
    std::string text;
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
        text.append(i ? ", " : "").append(reference_to(graph, node.outputs[i]));
    fmt::format_to(std::back_inserter(text), " = {}(", node.op ? node.op->name : "?");
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
        text.append(i ? ", " : "").append(reference_to(graph, node.inputs[i]));
    text += ")";
    if (node.op) text += attrs_text(node);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        const Value* v = find(graph, node.outputs[i]);
        text.append(i ? ", " : " : ").append(v ? v->type.str() : "?");
    }
    if (!node.label.empty()) text += "   # " + node.label;
    return text;
}

std::string print(const Graph& graph) {
    std::string text;
    print_sources(graph, text);
    for (const Node& node : graph.nodes) {
        text += print(graph, node) + '\n';
        print_bodies(node, text);
    }
    for (const auto& [name, id] : graph.outputs)
        fmt::format_to(std::back_inserter(text), "{:<8} \"{}\" = {}\n", "output", name,
                       reference_to(graph, id));
    for (const Condition& condition : graph.conditions)
        fmt::format_to(std::back_inserter(text), "{:<8} {}   # {}\n", "where", condition.str(),
                       condition.where);
    return text;
}

}  // namespace headrace
