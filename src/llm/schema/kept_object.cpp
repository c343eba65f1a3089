#include <fmt/format.h>

#include <algorithm>

#include "llm/schema/schema_keeper.h"

namespace headrace::llm {
namespace {

bool requires_name(const Json& object, const std::string& name) {
    const Json* required = keyword_of(object, "required");
    return required && std::ranges::find(*required, Json(name)) != required->end();
}

/// Whether an object with all that is required has what the rule asks for anyway.
bool depends_on_required(const Json& rule, const Json& object) {
    return rule.is_object() && std::ranges::all_of(rule.items(), [&](const auto& item) {
               return item.value().is_array() && std::ranges::all_of(item.value(), [&](const Json& name) {
                          return name.is_string() && requires_name(object, name.template get<std::string>());
                      });
           });
}

}  // namespace

/// As in llama.cpp, an object with properties has no others unless its schema speaks of them.
Json SchemaKeeper::kept_object(const Json& schema, Place at) {
    Json object{{"type", "object"}};
    const Json* properties = keyword_of(schema, "properties");
    if (properties && !properties->is_object()) return Json{{"type", "object"}, {"properties", *properties}};
    const Json* additional = keyword_of(schema, "additionalProperties");
    if (!additional) additional = keyword_of(schema, "unevaluatedProperties");
    const Json* by_pattern = keyword_of(schema, "patternProperties");
    bool is_open = additional ? *additional != false : !properties;
    if (properties) {
        object["properties"] = Json::object();
        for (const auto& [name, property] : properties->items())
            if (property != false)
                object["properties"][name] = kept(property, place_within(at + "/properties", name));
    }
    if (by_pattern && by_pattern->is_object() && !by_pattern->empty()) {
        const bool is_all = !properties && !is_open;
        if (is_open || is_all) lose(at, "patternProperties", kNoGrammar);
        if (is_all) {  // names of any kind, with one of the values
            Json values = Json::array();
            for (const auto& [pattern, value] : by_pattern->items())
                values.push_back(kept(value, place_within(at + "/patternProperties", pattern)));
            object["additionalProperties"] = values.size() == 1 ? values[0] : Json{{"anyOf", values}};
            is_open = true;
        }
    }
    if (additional && !object.contains("additionalProperties"))
        object["additionalProperties"] =
            additional->is_object() ? kept(*additional, at + "/additionalProperties") : *additional;
    if (is_open) lose_each(schema, {"propertyNames"}, at);
    keep_required(schema, is_open, object, at);
    keep_counts(schema, is_open, object, at);
    return object;
}

void SchemaKeeper::keep_required(const Json& schema, bool is_open, Json& object, Place at) {
    object["required"] = Json::array();
    const Json* required = keyword_of(schema, "required");
    if (required && required->is_array()) {
        const bool may_have_others = is_open || !keyword_of(object, "additionalProperties");
        for (const Json& name : *required) {
            if (!name.is_string()) continue;
            const auto& text = name.get_ref<const std::string&>();
            const bool is_there = object.contains("properties") && object["properties"].contains(text);
            if (!is_there && !may_have_others) {
                lose(at, "required", fmt::format("the schema allows no property '{:.60}'", text));
                continue;
            }
            if (!is_there) {
                const Json* other = keyword_of(object, "additionalProperties");
                object["properties"][text] = other && other->is_object() ? *other : Json::object();
                if (is_open && !other) object["additionalProperties"] = true;
            }
            object["required"].push_back(name);
        }
    }
    for (const std::string_view keyword : {"dependentRequired", "dependencies"})
        if (const Json* rule = keyword_of(schema, keyword); rule && !depends_on_required(*rule, object))
            lose(at, keyword, kNoGrammar);
    lose_each(schema, {"dependentSchemas"}, at);
}

void SchemaKeeper::keep_counts(const Json& schema, bool is_open, const Json& object, Place at) {
    const auto least = count_of(schema, "minProperties"), most = count_of(schema, "maxProperties");
    if (least && object["required"].size() < *least) lose(at, "minProperties", kNoGrammar);
    const std::size_t count = object.contains("properties") ? object["properties"].size() : 0;
    if (most && (is_open || count > *most)) lose(at, "maxProperties", kNoGrammar);
}

}  // namespace headrace::llm
