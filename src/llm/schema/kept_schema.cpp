#include "llm/schema/kept_schema.h"

#include <fmt/format.h>

#include <algorithm>

#include "llm/schema/schema_keeper.h"
#include "llm/schema/schema_merge.h"

namespace headrace::llm {

std::string LostKeyword::message() const {
    return fmt::format("'{}' at {} is not kept to: {}", keyword, place, reason);
}

Result<KeptSchema> keep_schema(const Json& schema, std::size_t first_number) {
    return SchemaKeeper(schema, first_number).run();
}

bool is_plain_schema(const Json& schema) {
    if (!schema.is_object()) return false;
    return std::ranges::all_of(schema.items(), [&](const auto& item) {
        const std::string& keyword = item.key();
        const Json& value = item.value();
        const auto is_named = [&](const Json& name) {
            const Json* properties = keyword_of(schema, "properties");
            return name.is_string() && properties && properties->contains(name.get<std::string>());
        };
        if (is_annotation(keyword)) return true;
        if (keyword == "type") return value.is_string();
        if (keyword == "items") return is_plain_schema(value);
        if (keyword == "additionalProperties") return value.is_boolean() || is_plain_schema(value);
        if (keyword == "required") return value.is_array() && std::ranges::all_of(value, is_named);
        if (keyword == "enum") return !schema.contains("const") && value.is_array();
        return keyword == "properties" && value.is_object() &&
               std::ranges::all_of(value.items(),
                                   [](const auto& one) { return is_plain_schema(one.value()); });
    });
}

std::int64_t number_mark(std::size_t index) {
    constexpr std::int64_t kFirst = 8'471'306'529'174'000'000;  // nobody's constant
    return kFirst + static_cast<std::int64_t>(index);
}

}  // namespace headrace::llm
