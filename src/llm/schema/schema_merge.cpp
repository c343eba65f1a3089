#include "llm/schema/schema_merge.h"

#include <algorithm>
#include <string>
#include <utility>

namespace headrace::llm {
namespace {

template <std::size_t N>
bool is_among(std::string_view name, const std::string_view (&names)[N]) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

constexpr std::string_view kAnnotations[] = {
    "title",           "description",     "default",     "examples",
    "example",         "$comment",        "deprecated",  "readOnly",
    "writeOnly",       "$schema",         "$id",         "id",
    "$anchor",         "$defs",           "definitions", "$vocabulary",
    "contentEncoding", "contentMediaType"};
constexpr std::string_view kLowerBounds[] = {"minimum", "exclusiveMinimum", "minLength", "minItems",
                                             "minProperties"};
constexpr std::string_view kUpperBounds[] = {"maximum", "exclusiveMaximum", "maxLength", "maxItems",
                                             "maxProperties"};
constexpr std::string_view kInnerSchemas[] = {"items", "additionalProperties", "propertyNames"};

using Merged = std::optional<Json>;

Json as_list(const Json& types) { return types.is_array() ? types : Json::array({types}); }

bool lists(const Json& list, const Json& value) {
    return std::find(list.begin(), list.end(), value) != list.end();
}

/// Whole numbers are numbers.
Merged common_types(const Json& a, const Json& b) {
    Json both = Json::array();
    const Json left = as_list(a), right = as_list(b);
    for (const Json& type : left) {
        if (lists(right, type) || (type == "integer" && lists(right, "number")))
            both.push_back(type);
        else if (type == "number" && lists(right, "integer"))
            both.push_back("integer");
    }
    if (both.empty()) return std::nullopt;
    return both.size() == 1 ? Json(both[0]) : both;
}

Merged common_values(const Json& a, const Json& b) {
    if (!a.is_array() || !b.is_array()) return std::nullopt;
    Json both = Json::array();
    for (const Json& value : a)
        if (lists(b, value)) both.push_back(value);
    return both.empty() ? Merged() : both;
}

Json united(Json a, const Json& b) {
    for (const Json& value : b)
        if (!lists(a, value)) a.push_back(value);
    return a;
}

Merged merged_properties(Json a, const Json& b) {
    for (const auto& [name, schema] : b.items()) {
        if (!a.contains(name)) {
            a[name] = schema;
            continue;
        }
        Merged both = merged_schemas(a[name], schema);
        if (!both) return std::nullopt;
        a[name] = *std::move(both);
    }
    return a;
}

Merged merged_values(std::string_view keyword, const Json& a, const Json& b) {
    if (a == b || is_annotation(keyword)) return a;
    if (keyword == "type") return common_types(a, b);
    if (keyword == "enum") return common_values(a, b);
    if (a.is_number() && b.is_number() && is_among(keyword, kLowerBounds)) return std::max(a, b);
    if (a.is_number() && b.is_number() && is_among(keyword, kUpperBounds)) return std::min(a, b);
    if (a.is_boolean() && b.is_boolean() && keyword == "uniqueItems") return true;  // one of them asks for it
    if (a.is_array() && b.is_array() && (keyword == "required" || keyword == "allOf")) return united(a, b);
    if (a.is_object() && b.is_object() && keyword == "properties") return merged_properties(a, b);
    if (is_among(keyword, kInnerSchemas)) return merged_schemas(a, b);
    return std::nullopt;
}

/// The properties of `from` are others' additional ones; those that these forbid are left out.
bool hold_to_additional(const Json& other, Json& from) {
    const auto rule = other.find("additionalProperties");
    const auto properties = from.find("properties");
    if (rule == other.end() || *rule == true || properties == from.end() || !properties->is_object())
        return true;
    const Json own = other.value("properties", Json::object());
    Json kept = Json::object();
    for (const auto& [name, schema] : properties->items()) {
        if (own.contains(name)) {
            kept[name] = schema;
        } else if (*rule != false) {
            Merged both = merged_schemas(schema, *rule);
            if (!both) return false;
            kept[name] = *std::move(both);
        }
    }
    from["properties"] = std::move(kept);
    return true;
}

}  // namespace

bool is_annotation(std::string_view keyword) { return is_among(keyword, kAnnotations); }

std::optional<Json> merged_schemas(const Json& a, const Json& b) {
    if (a == true || a == b) return b;
    if (b == true) return a;
    if (a == false || b == false) return false;
    if (!a.is_object() || !b.is_object()) return std::nullopt;
    Json all = a, more = b;
    if (!hold_to_additional(a, more) || !hold_to_additional(b, all)) return std::nullopt;
    for (const auto& [keyword, value] : more.items()) {
        if (!all.contains(keyword)) {
            all[keyword] = value;
            continue;
        }
        Merged both = merged_values(keyword, all[keyword], value);
        if (!both) return std::nullopt;
        all[keyword] = *std::move(both);
    }
    return all;
}

}  // namespace headrace::llm
