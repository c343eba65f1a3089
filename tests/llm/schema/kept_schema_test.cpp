#include "llm/schema/kept_schema.h"

#include <gmock/gmock.h>

#include "llm/parameters/parameters.h"

namespace headrace::llm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

/// "keyword at place" of each.
std::vector<std::string> lost(const Json& schema) {
    const Result<KeptSchema> kept = keep_schema(schema);
    EXPECT_TRUE(kept.ok());
    std::vector<std::string> names;
    for (const LostKeyword& keyword : kept.value().lost)
        names.push_back(keyword.keyword + " at " + keyword.place);
    return names;
}

TEST(KeptSchema, LosesNothingOfWhatAGrammarCanSay) {
    EXPECT_THAT(lost({{"type", "object"},
                      {"properties",
                       {{"a", {{"type", "string"}, {"pattern", "\\d"}}},
                        {"b", {{"type", "number"}, {"minimum", 0}}}}},
                      {"required", {"a"}},
                      {"minProperties", 1},
                      {"maxProperties", 2}}),
                IsEmpty());
    EXPECT_THAT(lost({{"type", "array"}, {"prefixItems", {{{"type", "null"}}}}, {"items", false}}),
                IsEmpty());
    EXPECT_THAT(lost({{"type", "array"}, {"uniqueItems", true}, {"maxItems", 1}}), IsEmpty());
    EXPECT_THAT(lost({{"type", "string"}, {"pattern", "^[a-z]{2,4}$"}, {"minLength", 1}, {"maxLength", 9}}),
                IsEmpty());
    EXPECT_THAT(lost({{"type", "string"}, {"format", "uuid"}, {"minLength", 36}}), IsEmpty());
    EXPECT_THAT(lost({{"enum", {1, 2}}, {"title", "x"}, {"x-own", 3}}), IsEmpty());
}

TEST(KeptSchema, NamesEachKeywordThatNoGrammarSaysAndItsPlace) {
    EXPECT_THAT(
        lost({{"type", "object"},
              {"properties",
               {{"a/b", {{"type", "array"}, {"uniqueItems", true}, {"contains", {{"type", "null"}}}}}}}}),
        UnorderedElementsAre("uniqueItems at #/properties/a~1b", "contains at #/properties/a~1b"));
    EXPECT_THAT(lost({{"type", "string"}, {"not", {{"const", "x"}}}}), ElementsAre("not at #"));
    EXPECT_THAT(lost({{"type", "object"}, {"if", true}, {"then", true}, {"else", true}}),
                UnorderedElementsAre("if at #", "then at #", "else at #"));
    EXPECT_THAT(
        lost({{"type", "object"},
              {"patternProperties", {{"^x", {{"type", "null"}}}}},
              {"propertyNames", {{"pattern", "a"}}},
              {"minProperties", 1},
              {"maxProperties", 3},
              {"dependentRequired", {{"a", {"b"}}}},
              {"dependentSchemas", {{"a", true}}}}),
        UnorderedElementsAre("patternProperties at #", "propertyNames at #", "minProperties at #",
                             "maxProperties at #", "dependentRequired at #", "dependentSchemas at #"));
    EXPECT_THAT(lost({{"type", "integer"}, {"multipleOf", 7}}), ElementsAre("multipleOf at #"));
    EXPECT_THAT(lost({{"type", "number"}, {"minimum", 5}, {"maximum", 4}}), ElementsAre("minimum at #"));
    EXPECT_THAT(lost({{"type", "string"}, {"format", "colour"}}), ElementsAre("format at #"));
    EXPECT_THAT(lost({{"type", "string"}, {"pattern", "^(?=x)y$"}}), ElementsAre("pattern at #"));
    EXPECT_THAT(lost({{"type", "string"}, {"pattern", "x"}, {"maxLength", 1}}),
                ElementsAre("maxLength at #"));
    EXPECT_THAT(lost({{"type", "string"}, {"maxLength", 5000}}), ElementsAre("maxLength at #"));
    EXPECT_THAT(lost({{"enum", {"a", "bb"}}, {"minLength", 2}}), ElementsAre("minLength at #"));
    EXPECT_THAT(lost({{"type", "object"},
                      {"properties", Json::object()},
                      {"additionalProperties", false},
                      {"required", {"a"}}}),
                ElementsAre("required at #"));
    EXPECT_THAT(lost({{"anyOf", {{{"type", "null"}}, {{"type", "array"}, {"uniqueItems", true}}}}}),
                ElementsAre("uniqueItems at #/anyOf/1"));
    EXPECT_THAT(lost({{"$ref", "#/$defs/a"}, {"$defs", {{"a", {{"type", "array"}, {"uniqueItems", true}}}}}}),
                ElementsAre("uniqueItems at #/$defs/a"));
    EXPECT_THAT(lost({{"minimum", 3}, {"pattern", "x"}}),
                UnorderedElementsAre("minimum at #", "pattern at #"));
    EXPECT_THAT(lost({{"allOf", {{{"type", "string"}}, {{"type", "null"}}}}}), ElementsAre("allOf at #"));
}

TEST(KeptSchema, ThatGrowsBeyondMeasureIsRefused) {
    Json schema = {{"$defs", {{"d0", {{"type", "object"}, {"properties", {{"x", {{"type", "null"}}}}}}}}}};
    for (int i = 1; i < 24; ++i) {
        const Json below = {{"$ref", "#/$defs/d" + std::to_string(i - 1)}};
        schema["$defs"]["d" + std::to_string(i)] = {{"allOf", {below, below}}};
    }
    schema["allOf"] = {{{"$ref", "#/$defs/d23"}}};
    EXPECT_FALSE(keep_schema(schema).ok());
    const Json circle = {{"allOf", {{{"$ref", "#"}}}}};
    EXPECT_FALSE(keep_schema(circle).ok());
}

TEST(KeptSchema, WhatIsLostIsAWarningOfTheRequestAndAnErrorOfAStrictOne) {
    constexpr auto kSchema =
        R"({"type": "object", "properties": {"a": {"type": "array", "uniqueItems": true}}})";
    const auto read = [](const std::string& json, Warnings& warnings) {
        return with_parameters({}, json, Level::request, warnings);
    };
    Warnings warnings;
    ASSERT_TRUE(read(fmt::format(R"({{"json_schema": {}}})", kSchema), warnings).ok());
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_EQ(warnings[0].parameter, "json_schema");
    EXPECT_THAT(warnings[0].message, HasSubstr("'uniqueItems' at #/properties/a is not kept to"));
    const auto format = [&](const char* strict) {
        return fmt::format(
            R"({{"response_format": {{"type": "json_schema", "json_schema": {{"strict": {}, "schema": {}}}}}}})",
            strict, kSchema);
    };
    EXPECT_TRUE(read(format("false"), warnings).ok());
    const auto refused = read(format("true"), warnings);
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.error().message, HasSubstr("'uniqueItems' at #/properties/a"));
    EXPECT_EQ(refused.error().parameter, "response_format");
    EXPECT_FALSE(read(format("\"yes\""), warnings).ok());
    EXPECT_FALSE(read(fmt::format(R"({{"json_schema": {}, "strict": true}})", kSchema), warnings).ok());
}

TEST(KeptSchema, OfAToolIsSpokenOfLikewise) {
    const auto tools = [](const char* strict) {
        return fmt::format(R"({{"tools": [{{"type": "function", "function": {{"name": "f", "strict": {},
            "parameters": {{"type": "object", "properties": {{"n": {{"type": "integer", "multipleOf": 7}}}}}}}}}}]}})",
                           strict);
    };
    Warnings warnings;
    ASSERT_TRUE(with_parameters({}, tools("false"), Level::request, warnings).ok());
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_THAT(warnings[0].message,
                HasSubstr("'tools[0].function.parameters': 'multipleOf' at #/properties/n"));
    const auto refused = with_parameters({}, tools("true"), Level::request, warnings);
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.error().message, HasSubstr("'multipleOf' at #/properties/n"));
}

TEST(KeptSchema, IsPlainWhereTheConverterReadsItAsItIsMeant) {
    EXPECT_TRUE(is_plain_schema({{"type", "object"},
                                 {"properties", {{"a", {{"type", "string"}, {"description", "x"}}}}},
                                 {"required", {"a"}},
                                 {"additionalProperties", false}}));
    EXPECT_FALSE(is_plain_schema({{"type", "number"}, {"minimum", 0}}));
    EXPECT_FALSE(is_plain_schema({{"type", "object"}, {"required", {"a"}}}));
    EXPECT_FALSE(is_plain_schema({{"type", {"string", "null"}}}));
}

}  // namespace
}  // namespace headrace::llm
