#include "ir/attr.h"

#include <cmath>
#include <limits>

#include "ir/graph.h"

namespace headrace {

std::string_view name_of(AttrKind kind) {
    static constexpr std::string_view kNames[] = {
        "bool",          "integer",         "number", "real number", "text", "list of integers",
        "list of reals", "list of extents", "dtype",  "graph"};
    return kNames[static_cast<int>(kind)];
}

namespace {

template <class T>
std::string list(const std::vector<T>& values) {
    return fmt::format("[{}]", fmt::join(values, ", "));
}

struct Printer {
    std::string operator()(std::monostate) const { return "none"; }
    std::string operator()(bool b) const { return b ? "true" : "false"; }
    std::string operator()(std::int64_t v) const { return std::to_string(v); }
    std::string operator()(std::uint64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const { return fmt::format("{}", v); }
    std::string operator()(const std::string& v) const { return fmt::format("\"{}\"", v); }
    std::string operator()(const std::vector<std::int64_t>& v) const { return list(v); }
    std::string operator()(const std::vector<double>& v) const { return list(v); }
    std::string operator()(const Shape& v) const { return headrace::str(v); }
    std::string operator()(DType v) const { return std::string(name_of(v)); }
    std::string operator()(const GraphPtr& v) const {
        return v ? fmt::format("a graph of {} nodes", v->nodes.size()) : "none";
    }
};

Error mistyped(AttrKind wanted, const AttrValue& v) {
    return invalid("{} is not {} {}", text_of(v), wanted == AttrKind::integer ? "an" : "a", name_of(wanted));
}

}  // namespace

std::string text_of(const AttrValue& value) { return std::visit(Printer{}, value); }

namespace detail {

Result<bool> as_bool(const AttrValue& v) {
    if (const auto* b = std::get_if<bool>(&v)) return *b;
    return mistyped(AttrKind::boolean, v);
}

Result<std::int64_t> as_integer(const AttrValue& v) {
    if (const auto* i = std::get_if<std::int64_t>(&v)) return *i;
    if (const auto* u = std::get_if<std::uint64_t>(&v); u && *u <= static_cast<std::uint64_t>(INT64_MAX))
        return static_cast<std::int64_t>(*u);
    return mistyped(AttrKind::integer, v);
}

Result<Number> as_number(const AttrValue& v) {
    if (const auto* i = std::get_if<std::int64_t>(&v)) return Number{*i};
    if (const auto* u = std::get_if<std::uint64_t>(&v)) return Number{*u};
    if (const auto* d = std::get_if<double>(&v)) return Number{*d};
    return mistyped(AttrKind::number, v);
}

Result<double> as_real(const AttrValue& v) {
    auto number = as_number(v);
    if (!number.ok()) return mistyped(AttrKind::real, v);
    return number_as<double>(number.value());
}

Result<std::string> as_text(const AttrValue& v) {
    if (const auto* s = std::get_if<std::string>(&v)) return *s;
    return mistyped(AttrKind::text, v);
}

Result<std::vector<std::int64_t>> as_integers(const AttrValue& v) {
    if (const auto* list = std::get_if<std::vector<std::int64_t>>(&v)) return *list;
    if (const auto* reals = std::get_if<std::vector<double>>(&v); reals && reals->empty())
        return std::vector<std::int64_t>{};
    return mistyped(AttrKind::integers, v);
}

Result<std::vector<double>> as_reals(const AttrValue& v) {
    if (const auto* list = std::get_if<std::vector<double>>(&v)) return *list;
    if (const auto* list = std::get_if<std::vector<std::int64_t>>(&v))
        return std::vector<double>(list->begin(), list->end());
    return mistyped(AttrKind::reals, v);
}

Result<Shape> as_shape(const AttrValue& v) {
    if (const auto* shape = std::get_if<Shape>(&v)) return *shape;
    auto integers = as_integers(v);
    if (!integers.ok()) return mistyped(AttrKind::shape, v);
    return Shape(integers.value().begin(), integers.value().end());
}

Result<DType> as_dtype(const AttrValue& v) {
    if (const auto* t = std::get_if<DType>(&v)) return *t;
    if (const auto* s = std::get_if<std::string>(&v))
        if (auto t = dtype_from_name(*s)) return *t;
    return mistyped(AttrKind::dtype, v);
}

Result<GraphPtr> as_graph(const AttrValue& v) {
    if (const auto* graph = std::get_if<GraphPtr>(&v); graph && *graph) return *graph;
    return mistyped(AttrKind::graph, v);
}

Result<std::size_t> as_choice(const AttrValue& v, std::span<const std::string_view> choices) {
    const auto* s = std::get_if<std::string>(&v);
    for (std::size_t i = 0; s && i < choices.size(); ++i)
        if (*s == choices[i]) return i;
    return invalid("{} is none of {}", text_of(v), fmt::join(choices, ", "));
}

}  // namespace detail
}  // namespace headrace
