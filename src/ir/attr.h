#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "ir/dtype.h"
#include "ir/tensor_type.h"

namespace headrace {

class Graph;
/// The body of an op that decides how a run goes on. Two are equal where they are one object.
using GraphPtr = std::shared_ptr<const Graph>;

/// An attribute's value in the one generic form that printing, equality, files, JSON and Python share.
/// monostate: an optional attribute that is absent.
using AttrValue = std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string,
                               std::vector<std::int64_t>, std::vector<double>, Shape, DType, GraphPtr>;

enum class AttrKind : std::uint8_t {
    boolean,
    integer,
    number,
    real,
    text,
    integers,
    reals,
    shape,
    dtype,
    graph
};
std::string_view name_of(AttrKind kind);
std::string text_of(const AttrValue& value);

/// What one attribute of an op is called and takes.
struct Field {
    std::string_view name;
    std::string_view doc;
    AttrKind kind = AttrKind::integer;
    bool required = false;
    AttrValue default_value;
    std::span<const std::string_view> choices;  ///< of an enumeration; else empty
};

/// Attributes by name, as a door or a file hands them over.
using NamedAttrs = std::vector<std::pair<std::string, AttrValue>>;

/// An op's attribute struct, type-erased and immutable. Null for ops without attributes.
using AttrBox = std::shared_ptr<const void>;

/// A number that keeps 64-bit integers exact (the specification's MLNumber).
using Number = std::variant<std::int64_t, std::uint64_t, double>;

template <class T>
T number_as(const Number& n) {
    return std::visit([](auto v) { return static_cast<T>(v); }, n);
}

/// An enumeration used as an attribute names its values: `constexpr auto enum_names(E) ->
/// array<string_view>`.
template <class T>
concept NamedEnum = std::is_enum_v<T> && requires(T v) {
    { enum_names(v)[0] } -> std::convertible_to<std::string_view>;
};

namespace detail {

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

template <NamedEnum T>
inline constexpr auto kEnumNames = enum_names(T{});

template <class T>
struct ValueOf {
    using type = T;
};
template <class T>
struct ValueOf<std::optional<T>> {
    using type = T;
};
template <class T>
using value_t = typename ValueOf<T>::type;  ///< T of an optional<T>

template <class T>
constexpr AttrKind kind_of() {
    if constexpr (is_optional<T>)
        return kind_of<typename T::value_type>();
    else if constexpr (std::same_as<T, bool>)
        return AttrKind::boolean;
    else if constexpr (std::same_as<T, std::int64_t>)
        return AttrKind::integer;
    else if constexpr (std::same_as<T, Number>)
        return AttrKind::number;
    else if constexpr (std::same_as<T, double>)
        return AttrKind::real;
    else if constexpr (std::same_as<T, std::string> || NamedEnum<T>)
        return AttrKind::text;
    else if constexpr (std::same_as<T, std::vector<std::int64_t>>)
        return AttrKind::integers;
    else if constexpr (std::same_as<T, std::vector<double>>)
        return AttrKind::reals;
    else if constexpr (std::same_as<T, Shape>)
        return AttrKind::shape;
    else if constexpr (std::same_as<T, GraphPtr>)
        return AttrKind::graph;
    else {
        static_assert(std::same_as<T, DType>, "no attribute may have this type");
        return AttrKind::dtype;
    }
}

template <class T>
AttrValue to_attr(const T& member) {
    if constexpr (is_optional<T>)
        return member ? to_attr(*member) : AttrValue{};
    else if constexpr (std::same_as<T, Number>)
        return std::visit([](auto v) -> AttrValue { return v; }, member);
    else if constexpr (NamedEnum<T>)
        return std::string(kEnumNames<T>[static_cast<std::size_t>(member)]);
    else
        return member;
}

/// Converts with the widenings that doors need: integer to number, integers to shape, and so on.
Result<bool> as_bool(const AttrValue& v);
Result<std::int64_t> as_integer(const AttrValue& v);
Result<Number> as_number(const AttrValue& v);
Result<double> as_real(const AttrValue& v);
Result<std::string> as_text(const AttrValue& v);
Result<std::vector<std::int64_t>> as_integers(const AttrValue& v);
Result<std::vector<double>> as_reals(const AttrValue& v);
Result<Shape> as_shape(const AttrValue& v);
Result<DType> as_dtype(const AttrValue& v);
Result<GraphPtr> as_graph(const AttrValue& v);
Result<std::size_t> as_choice(const AttrValue& v, std::span<const std::string_view> choices);

template <class T>
Result<T> from_attr(const AttrValue& v) {
    if constexpr (is_optional<T>) {
        if (std::holds_alternative<std::monostate>(v)) return T{};
        HR_ASSIGN(auto inner, from_attr<typename T::value_type>(v));
        return T{std::move(inner)};
    } else if constexpr (NamedEnum<T>) {
        HR_ASSIGN(const std::size_t index, as_choice(v, kEnumNames<T>));
        return static_cast<T>(index);
    } else if constexpr (std::same_as<T, bool>)
        return as_bool(v);
    else if constexpr (std::same_as<T, std::int64_t>)
        return as_integer(v);
    else if constexpr (std::same_as<T, Number>)
        return as_number(v);
    else if constexpr (std::same_as<T, double>)
        return as_real(v);
    else if constexpr (std::same_as<T, std::string>)
        return as_text(v);
    else if constexpr (std::same_as<T, std::vector<std::int64_t>>)
        return as_integers(v);
    else if constexpr (std::same_as<T, std::vector<double>>)
        return as_reals(v);
    else if constexpr (std::same_as<T, Shape>)
        return as_shape(v);
    else if constexpr (std::same_as<T, GraphPtr>)
        return as_graph(v);
    else
        return as_dtype(v);
}

}  // namespace detail

/// For ops that have none.
struct NoAttrs {
    static void fields(auto&&) {}
};

/// Tag for `field(name, member, doc, kRequired)`: the caller must give a value.
struct RequiredTag {};
inline constexpr RequiredTag kRequired{};

/// The field table of an attribute struct whose `fields(f)` calls f(name, member, doc[, kRequired]).
template <class A>
std::vector<Field> fields_of() {
    std::vector<Field> rows;
    const A defaults{};
    A::fields([&](std::string_view name, auto member, std::string_view doc, auto... required) {
        using T = std::remove_cvref_t<decltype(defaults.*member)>;
        Field row{name, doc, detail::kind_of<T>(), sizeof...(required) > 0, detail::to_attr(defaults.*member),
                  {}};
        if constexpr (NamedEnum<T>) row.choices = detail::kEnumNames<T>;
        rows.push_back(std::move(row));
    });
    return rows;
}

/// Builds an attribute struct from named values: unknown, missing and mistyped ones are errors.
template <class A>
Result<AttrBox> make_attrs(const NamedAttrs& named) {
    auto attrs = std::make_shared<A>();
    Status status = success();
    std::size_t used = 0;
    std::string known;
    A::fields([&](std::string_view name, auto member, std::string_view, auto... required) {
        using T = std::remove_cvref_t<decltype((*attrs).*member)>;
        known.append(known.empty() ? "" : ", ").append(name);
        if (!status.ok()) return;
        for (const auto& [key, value] : named) {
            if (key != name) continue;
            ++used;
            auto converted = detail::from_attr<T>(value);
            if (!converted.ok()) {
                status = converted.error().within(
                    fmt::format("{} {}", NamedEnum<detail::value_t<T>> ? "Invalid" : "attribute", name));
                return;
            }
            (*attrs).*member = std::move(converted).value();
            return;
        }
        if (sizeof...(required) > 0) status = invalid("attribute {} is missing", name);
    });
    HR_TRY(status);
    if (used != named.size()) {
        for (const auto& [key, value] : named) {
            bool found = false;
            A::fields([&](std::string_view name, auto&&...) { found = found || key == name; });
            if (!found)
                return invalid("unknown attribute '{}'; this op takes: {}", key,
                               known.empty() ? "none" : known);
        }
        return invalid("an attribute is given twice");
    }
    return AttrBox(std::move(attrs));
}

/// The attribute values in field order.
template <class A>
std::vector<AttrValue> attr_values(const void* attrs) {
    std::vector<AttrValue> values;
    A::fields([&](std::string_view, auto member, std::string_view, auto...) {
        values.push_back(detail::to_attr(static_cast<const A*>(attrs)->*member));
    });
    return values;
}

}  // namespace headrace
