#include "llm/schema/schema_cost.h"

#include <gmock/gmock.h>

#include "llm/parameters/parameters.h"

namespace headrace::llm {
namespace {

Json object(int properties, int required) {
    Json schema = {{"type", "object"}, {"properties", Json::object()}, {"required", Json::array()}};
    for (int i = 0; i < properties; ++i) {
        const std::string name = "p" + std::to_string(i);
        schema["properties"][name] = {{"type", "string"}};
        if (i < required) schema["required"].push_back(name);
    }
    return schema;
}

bool is_taken(const Json& schema) { return check_schema_cost(schema).ok(); }

TEST(SchemaCost, OfOrdinarySchemasIsTaken) {
    EXPECT_TRUE(is_taken(true));
    EXPECT_TRUE(is_taken(object(0, 0)));
    EXPECT_TRUE(is_taken(object(500, 0)));
    EXPECT_TRUE(is_taken(object(5000, 5000)));
    EXPECT_TRUE(is_taken({{"allOf", {object(20, 3), object(20, 3)}}}));
    Json tools = Json::array();
    for (int i = 0; i < 200; ++i) tools.push_back({{"function", {{"parameters", object(20, 2)}}}});
    EXPECT_TRUE(is_taken(tools));
}

TEST(SchemaCost, ThatGrowsBeyondMeasureIsRefused) {
    EXPECT_FALSE(is_taken(object(3000, 0)));
    Json other_names = object(3000, 0);
    for (int i = 0; i < 3000; ++i) other_names["required"].push_back("q" + std::to_string(i));
    EXPECT_FALSE(is_taken(other_names));
    Json inner = {{"type", "array"}, {"items", object(3000, 0)}};
    EXPECT_FALSE(is_taken({{"anyOf", {inner}}}));
    EXPECT_FALSE(is_taken({{"allOf", Json(3000, object(1, 0))}}));
    EXPECT_FALSE(
        is_taken({{"$defs", {{"a", object(100, 0)}}}, {"allOf", Json(100, {{"$ref", "#/$defs/a"}})}}));
    EXPECT_FALSE(is_taken({{"allOf", {{{"anyOf", Json(3000, object(1, 0))}}}}}));
}

TEST(SchemaCost, IsCheckedWhereverASchemaMayBe) {
    const Json schema = object(3000, 0);
    const Json tool = {{"type", "function"}, {"function", {{"name", "f"}, {"parameters", schema}}}};
    const Json format = {{"type", "json_schema"}, {"json_schema", {{"schema", schema}}}};
    for (const Json& parameters : {Json{{"json_schema", schema}}, Json{{"json_schema", schema.dump()}},
                                   Json{{"response_format", format}}, Json{{"tools", {tool}}}}) {
        Warnings warnings;
        const auto settings = with_parameters({}, parameters.dump(), Level::request, warnings);
        ASSERT_FALSE(settings.ok());
        EXPECT_THAT(settings.error().message, testing::HasSubstr("3000 in one of its objects"));
    }
}

}  // namespace
}  // namespace headrace::llm
