#include "doors/webnn/files/file_value.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "doors/webnn/files/graph_source.h"
#include "doors/webnn/state.h"

namespace headrace::webnn {
namespace {

constexpr std::size_t kMostListed = 60;

void append_double(std::string& out, double value) {
    const std::size_t start = out.size();
    fmt::format_to(std::back_inserter(out), "{}", value);
    // Without a point or exponent a reader would take it for an integer.
    if (out.find_first_of(".e", start) == std::string::npos) out += ".0";
}

struct Writer {
    std::string& out;
    Syntax syntax;

    void operator()(std::monostate) const { out += "null"; }
    void operator()(bool v) const { out += v ? "true" : "false"; }
    void operator()(std::int64_t v) const { fmt::format_to(std::back_inserter(out), "{}", v); }
    void operator()(std::uint64_t v) const { fmt::format_to(std::back_inserter(out), "{}", v); }
    void operator()(double v) const { append_double(out, v); }
    void operator()(const std::string& v) const { append_quoted(out, v, syntax); }
    void operator()(const FileValue::Integers& v) const {
        fmt::format_to(std::back_inserter(out), "[{}]", fmt::join(v, ", "));
    }
    void operator()(const FileValue::List& list) const {
        out += '[';
        for (std::size_t i = 0; i < list.size(); ++i) {
            if (i) out += ", ";
            append_value(out, list[i], syntax);
        }
        out += ']';
    }
    void operator()(const FileValue::Object& object) const {
        out += '{';
        for (std::size_t i = 0; i < object.size(); ++i) {
            if (i) out += ", ";
            append_quoted(out, object[i].first, syntax);
            out += ": ";
            append_value(out, object[i].second, syntax);
        }
        out += '}';
    }
};

std::optional<double> special_number(std::string_view name) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (name == "Infinity") return kInfinity;
    if (name == "-Infinity") return -kInfinity;
    if (name == "NaN") return std::numeric_limits<double>::quiet_NaN();
    return std::nullopt;
}

Result<double> to_double(const FileValue& value) {
    if (const auto* i = value.get<std::int64_t>()) return static_cast<double>(*i);
    if (const auto* u = value.get<std::uint64_t>()) return static_cast<double>(*u);
    if (const auto* d = value.get<double>()) return *d;
    if (const auto* s = value.get<std::string>())
        if (const auto special = special_number(*s)) return *special;
    return invalid("{} is not a number", excerpt(value));
}

Result<AttrValue> list_to_attr(const FileValue::List& list, AttrKind kind) {
    if (kind == AttrKind::shape) {
        Shape shape;
        for (const FileValue& element : list) {
            HR_ASSIGN(const MLDimension d, to_dimension(element));
            shape.push_back(d.dim());
        }
        return AttrValue(std::move(shape));
    }
    std::vector<double> reals;
    for (const FileValue& element : list) {
        HR_ASSIGN(const double real, to_double(element));
        reals.push_back(real);
    }
    return AttrValue(std::move(reals));
}

struct FromAttr {
    FileValue operator()(double v) const {
        if (std::isfinite(v)) return {v};
        return {std::string(std::isnan(v) ? "NaN" : v > 0 ? "Infinity" : "-Infinity")};
    }
    FileValue operator()(const std::vector<double>& v) const {
        FileValue::List list;
        for (double element : v) list.push_back((*this)(element));
        return {std::move(list)};
    }
    FileValue operator()(const Shape& shape) const {
        FileValue array{FileValue::Integers{}};
        for (const MLDimension& d : to_extents(shape)) append_element(array, from_dimension(d));
        return array;
    }
    FileValue operator()(const GraphPtr& v) const { return {text_of(v)}; }  // no operator of WebNN has one
    FileValue operator()(DType v) const { return {std::string(data_type_name(v))}; }
    template <class T>
    FileValue operator()(const T& v) const {
        return {v};
    }
};

}  // namespace

void append_element(FileValue& array, FileValue element) {
    if (auto* integers = std::get_if<FileValue::Integers>(&array.data)) {
        if (const auto* i = element.get<std::int64_t>()) {
            integers->push_back(*i);
            return;
        }
        FileValue::List list;
        list.reserve(integers->size() + 1);
        for (std::int64_t i : *integers) list.push_back({i});
        array.data = std::move(list);
    }
    std::get<FileValue::List>(array.data).push_back(std::move(element));
}

void append_quoted(std::string& out, std::string_view text, Syntax syntax) {
    out += '"';
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        if (syntax == Syntax::json && static_cast<unsigned char>(c) < 0x20)
            fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<int>(c));
        else
            out += c;
    }
    out += '"';
}

void append_value(std::string& out, const FileValue& value, Syntax syntax) {
    std::visit(Writer{out, syntax}, value.data);
}

std::string excerpt(const FileValue& value) {
    if (const auto* integers = value.get<FileValue::Integers>(); integers && integers->size() > kMostListed)
        return fmt::format("a list of {} integers", integers->size());
    if (const auto* list = value.get<FileValue::List>(); list && list->size() > kMostListed)
        return fmt::format("a list of {} values", list->size());
    if (value.get<FileValue::Object>()) return "an object";
    std::string text;
    append_value(text, value, Syntax::json);
    return excerpt(std::string_view(text));
}

Result<FileValue> parse_number(std::string_view literal) {
    const char* end = literal.data() + literal.size();
    const auto read = [&]<class T>(T value) -> Result<FileValue> {
        const auto [stop, error] = std::from_chars(literal.data(), end, value);
        if (error != std::errc() || stop != end) return invalid("{} is out of range", excerpt(literal));
        return FileValue{value};
    };
    if (literal.find_first_of(".eE") != std::string_view::npos) return read(double{});
    if (literal == "-0") return FileValue{-0.0};
    auto integer = read(std::int64_t{});
    if (!integer.ok()) integer = read(std::uint64_t{});
    if (!integer.ok()) return invalid("the integer {} needs more than 64 bits", excerpt(literal));
    return integer;
}

Result<AttrValue> to_attr_value(const FileValue& value, const Field& field) {
    if (value.is_null()) return AttrValue{};
    if (const auto* b = value.get<bool>()) return AttrValue(*b);
    if (const auto* i = value.get<std::int64_t>()) return AttrValue(*i);
    if (const auto* u = value.get<std::uint64_t>()) return AttrValue(*u);
    if (const auto* d = value.get<double>()) return AttrValue(*d);
    if (const auto* list = value.get<FileValue::List>()) return list_to_attr(*list, field.kind);
    if (const auto* integers = value.get<FileValue::Integers>()) {
        if (field.kind == AttrKind::shape) return AttrValue(Shape(integers->begin(), integers->end()));
        return AttrValue(*integers);
    }
    const auto* text = value.get<std::string>();
    if (!text) return invalid("an object is not a {}", name_of(field.kind));
    if (field.kind == AttrKind::dtype) {
        HR_ASSIGN(const DType type, find_data_type(*text));
        return AttrValue(type);
    }
    if (field.kind == AttrKind::real || field.kind == AttrKind::number)
        if (const auto special = special_number(*text)) return AttrValue(*special);
    return AttrValue(*text);
}

FileValue from_attr_value(const AttrValue& value) { return std::visit(FromAttr{}, value); }

}  // namespace headrace::webnn
