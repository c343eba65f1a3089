#include "llm/schema/schema_keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "llm/schema/schema_merge.h"

namespace headrace::llm {
namespace {

constexpr std::size_t kMostSchemas = 20000;
constexpr int kDeepestSchema = 200;
constexpr std::size_t kMostReferenceBytes = 1000;

/// A name of a JSON pointer in a URI's fragment: %20, ~1 and ~0 are characters.
std::string decoded_name(std::string_view text) {
    std::string name;
    for (std::size_t i = 0; i < text.size(); ++i) {
        int code = 0;
        const char* digits = text.data() + i + 1;
        if (text[i] == '%' && i + 2 < text.size() &&
            std::from_chars(digits, digits + 2, code, 16).ptr == digits + 2) {
            name += static_cast<char>(code);
            i += 2;
        } else if (text[i] == '~' && i + 1 < text.size() && (text[i + 1] == '0' || text[i + 1] == '1')) {
            name += text[++i] == '0' ? '~' : '/';
        } else {
            name += text[i];
        }
    }
    return name;
}

Json without(Json schema, std::string_view keyword) {
    schema.erase(std::string(keyword));
    return schema;
}

bool only_annotates(const Json& schema) {
    return std::ranges::all_of(schema.items(), [](const auto& item) { return is_annotation(item.key()); });
}

/// The type of values that its keywords are about, where that is one.
std::string type_by_keywords(const Json& schema) {
    static const std::vector<std::pair<std::string, std::vector<std::string_view>>> kFamilies = {
        {"object",
         {"properties", "required", "additionalProperties", "patternProperties", "propertyNames",
          "minProperties", "maxProperties", "dependentRequired", "dependentSchemas", "dependencies",
          "unevaluatedProperties"}},
        {"array",
         {"items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains",
          "minContains", "maxContains", "unevaluatedItems"}},
        {"string", {"pattern", "minLength", "maxLength", "format"}},
        {"number", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}}};
    std::string found;
    for (const auto& [type, keywords] : kFamilies) {
        const auto is_there = [&](std::string_view keyword) {
            return keyword_of(schema, keyword) != nullptr;
        };
        if (std::ranges::none_of(keywords, is_there)) continue;
        if (!found.empty()) return {};
        found = type;
    }
    return found;
}

bool is_of_type(const Json& value, std::string_view type) {
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number();
    return type == std::string_view(value.type_name());
}

}  // namespace

const Json* keyword_of(const Json& schema, std::string_view name) {
    const auto found = schema.find(std::string(name));
    return found == schema.end() ? nullptr : &*found;
}

std::optional<std::uint32_t> count_of(const Json& schema, std::string_view name) {
    const Json* value = keyword_of(schema, name);
    if (!value || !value->is_number() || *value < 0 || *value > 1e9) return std::nullopt;
    return static_cast<std::uint32_t>(value->get<double>());
}

std::string place_within(const std::string& at, std::string_view name) {
    std::string place = at + "/";
    for (const char c : name) place += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
    return place;
}

Result<KeptSchema> SchemaKeeper::run() {
    result_.schema = kept(root_, "#");
    if (written_ > kMostSchemas)
        return invalid(
            "a JSON schema has more than {} parts, with what its references and 'allOf' bring in; ask for "
            "less at once",
            kMostSchemas);
    if (!definitions_.empty() && result_.schema.is_object())
        result_.schema["$defs"] = std::move(definitions_);
    return std::move(result_);
}

void SchemaKeeper::lose(Place at, std::string_view keyword, std::string_view reason) {
    LostKeyword lost{at, std::string(keyword), std::string(reason)};
    const auto is_same = [&](const LostKeyword& other) {
        return other.place == lost.place && other.keyword == lost.keyword;
    };
    if (std::ranges::none_of(result_.lost, is_same)) result_.lost.push_back(std::move(lost));
}

void SchemaKeeper::lose_each(const Json& schema, std::initializer_list<std::string_view> keywords, Place at) {
    for (const std::string_view keyword : keywords)
        if (keyword_of(schema, keyword)) lose(at, keyword, kNoGrammar);
}

Json SchemaKeeper::kept(const Json& schema, Place at) {
    if (schema == true) return Json::object();
    if (!schema.is_object() || ++written_ > kMostSchemas || depth_ > kDeepestSchema) return schema;
    struct Deeper {
        int& depth;
        ~Deeper() { --depth; }
    } const deeper{++depth_};
    if (keyword_of(schema, "$ref")) return kept_reference(schema, at);
    if (keyword_of(schema, "$dynamicRef"))
        lose(at, "$dynamicRef", "references of this kind are not followed");
    if (keyword_of(schema, "allOf")) {
        const std::optional<Json> joined = without_all_of(schema, at);
        return joined ? kept(*joined, at) : schema;
    }
    if (keyword_of(schema, "oneOf")) return kept_union(schema, "oneOf", at);
    if (keyword_of(schema, "anyOf")) return kept_union(schema, "anyOf", at);
    if (keyword_of(schema, "const") || keyword_of(schema, "enum")) return kept_values(schema, at);
    const Json* type = keyword_of(schema, "type");
    if (type && type->is_array()) return kept_types(schema, at);
    lose_each(schema, {"not", "if", "then", "else"}, at);
    return kept_of_type(schema,
                        type && type->is_string() ? type->get<std::string>() : type_by_keywords(schema), at);
}

Json SchemaKeeper::kept_of_type(const Json& schema, const std::string& type, Place at) {
    if (type == "object") return kept_object(schema, at);
    if (type == "array") return kept_array(schema, at);
    if (type == "string") return kept_string(schema, at);
    if (type == "number" || type == "integer") return kept_number(schema, type, at);
    if (!type.empty()) return Json{{"type", type}};
    for (const auto& [keyword, value] : schema.items()) {
        const bool belongs_to_a_type = !type_by_keywords(Json{{keyword, value}}).empty();
        if (belongs_to_a_type) lose(at, keyword, "the schema has no 'type'");
    }
    if (const Json* wrong = keyword_of(schema, "type")) return Json{{"type", *wrong}};
    return Json::object();
}

/// Any of the types, each with the keywords that are about it.
Json SchemaKeeper::kept_types(const Json& schema, Place at) {
    Json all = Json::array();
    for (const Json& type : schema["type"]) {
        Json one = schema;
        one["type"] = type;
        all.push_back(kept(one, at));
    }
    return all.size() == 1 ? all[0] : Json{{"anyOf", all}};
}

Json SchemaKeeper::kept_values(const Json& schema, Place at) {
    const Json* fixed = keyword_of(schema, "const");
    const Json* list = keyword_of(schema, "enum");
    if (fixed && list && list->is_array() && std::ranges::find(*list, *fixed) == list->end())
        lose(at, "enum", "no value fits it and 'const'");
    for (const auto& [keyword, value] : schema.items()) {
        const bool is_said = keyword == "const" || keyword == "enum" || keyword == "type";
        const bool rules =
            !type_by_keywords(Json{{keyword, value}}).empty() || keyword == "not" || keyword == "if";
        if (!is_said && rules)
            lose(at, keyword, "it stands beside 'enum' or 'const'; leave out the values that it forbids");
    }
    if (fixed) return Json{{"const", *fixed}};
    const Json* given = keyword_of(schema, "type");
    if (!given || !list->is_array()) return Json{{"enum", *list}};
    const Json types = given->is_array() ? *given : Json::array({*given});
    Json fitting = Json::array();
    for (const Json& value : *list)
        if (std::ranges::any_of(types, [&](const Json& type) {
                return type.is_string() && is_of_type(value, type.get_ref<const std::string&>());
            }))
            fitting.push_back(value);
    if (fitting.empty()) lose(at, "type", "none of the values of 'enum' is of it");
    return Json{{"enum", fitting.empty() ? *list : fitting}};
}

/// What stands beside the alternatives is part of each.
Json SchemaKeeper::kept_union(const Json& schema, std::string_view keyword, Place at) {
    const Json& given = *keyword_of(schema, keyword);
    if (!given.is_array() || given.empty()) return Json{{"anyOf", given}};
    const Json beside = without(schema, keyword);
    const bool is_alone = only_annotates(beside);
    Json all = Json::array();
    for (std::size_t i = 0; i < given.size(); ++i) {
        const std::string place = fmt::format("{}/{}/{}", at, keyword, i);
        if (given[i] == false) continue;
        std::optional<Json> whole = given[i];
        if (!is_alone) {
            Json opened = given[i];
            const Json* reference = opened.is_object() ? keyword_of(opened, "$ref") : nullptr;
            const Json* target =
                reference && reference->is_string() ? target_of(reference->get<std::string>()) : nullptr;
            if (target) whole = merged_schemas(without(opened, "$ref"), *target);
            if (whole) whole = merged_schemas(*whole, beside);
            if (!whole) lose(at, keyword, "an alternative cannot be joined with what stands beside it");
        }
        if (whole && *whole != false) all.push_back(kept(*whole, place));
        if (written_ > kMostSchemas) break;
    }
    if (all.empty()) return is_alone ? Json{{"anyOf", given}} : kept(beside, at);
    return all.size() == 1 ? all[0] : Json{{"anyOf", all}};
}

std::optional<Json> SchemaKeeper::without_all_of(const Json& schema, Place at) {
    const Json& parts = schema["allOf"];
    if (!parts.is_array() || parts.empty()) return std::nullopt;  // the converter says so
    Json joined = without(schema, "allOf");
    std::vector<Json> waiting(parts.rbegin(), parts.rend());
    for (std::size_t taken = 0; !waiting.empty(); ++taken) {
        Json part = std::move(waiting.back());
        waiting.pop_back();
        if (taken > kMostSchemas) written_ = kMostSchemas;
        if (++written_ > kMostSchemas) return std::nullopt;
        const Json* reference = part.is_object() ? keyword_of(part, "$ref") : nullptr;
        if (reference && reference->is_string()) {
            const Json* target = target_of(reference->get<std::string>());
            if (!target) return std::nullopt;
            waiting.push_back(*target);
            part.erase("$ref");
        }
        if (const Json* inner = part.is_object() ? keyword_of(part, "allOf") : nullptr;
            inner && inner->is_array()) {
            const Json list = *inner;
            waiting.insert(waiting.end(), list.rbegin(), list.rend());
            part.erase("allOf");
        }
        std::optional<Json> both = merged_schemas(joined, part);
        if (both)
            joined = *std::move(both);
        else
            lose(at, "allOf", "one of its schemas cannot be joined with the others");
    }
    return joined;
}

Json SchemaKeeper::kept_reference(const Json& schema, Place at) {
    const Json& given = schema["$ref"];
    const Json* target = given.is_string() ? target_of(given.get<std::string>()) : nullptr;
    if (!target) return Json{{"$ref", given}};  // the converter says what is wrong
    const auto& reference = given.get_ref<const std::string&>();
    const Json beside = without(schema, "$ref");
    if (!only_annotates(beside)) {
        const std::optional<Json> whole =
            opened_.contains(reference) ? std::nullopt : merged_schemas(*target, beside);
        if (whole) {
            opened_.insert(reference);
            Json written = kept(*whole, at);
            opened_.erase(reference);
            return written;
        }
        for (const auto& [keyword, value] : beside.items())
            if (!is_annotation(keyword)) lose(at, keyword, "it cannot be joined with what '$ref' names");
    }
    const auto [name, is_new] = names_.emplace(reference, fmt::format("schema-{}", names_.size()));
    const std::string own = name->second;
    if (is_new) {
        definitions_[own] = Json::object();
        Json written = kept(*target, reference);
        definitions_[own] = std::move(written);
    }
    return Json{{"$ref", "#/$defs/" + own}};
}

const Json* SchemaKeeper::target_of(const std::string& reference) const {
    if (!reference.starts_with('#') || reference.size() > kMostReferenceBytes) return nullptr;
    const Json* target = &root_;
    std::string_view rest = std::string_view(reference).substr(1);
    while (!rest.empty()) {
        if (rest[0] != '/') return nullptr;
        rest.remove_prefix(1);
        const std::string name = decoded_name(rest.substr(0, rest.find('/')));
        rest.remove_prefix(std::min(rest.size(), rest.find('/')));
        if (target->is_object()) {
            target = keyword_of(*target, name);
        } else if (target->is_array()) {
            std::size_t index = 0;
            const auto end = std::from_chars(name.data(), name.data() + name.size(), index).ptr;
            target = !name.empty() && end == name.data() + name.size() && index < target->size()
                         ? &(*target)[index]
                         : nullptr;
        } else {
            return nullptr;
        }
        if (!target) return nullptr;
    }
    return target;
}

}  // namespace headrace::llm
