#include "llm/checks/schema_patterns.h"

#include <gmock/gmock.h>

#include "llm/parameters/parameters.h"

namespace headrace::llm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Json text_like(const char* pattern) { return {{"type", "string"}, {"pattern", pattern}}; }

TEST(SchemaPatterns, ThatAGrammarCanExpressAreKeptTo) {
    testing::internal::CaptureStderr();
    for (const char* pattern : {"^a+$", "^string$", "^[0-9]{3}-[a-z]*$", "^(?:x|y)$", "^$"})
        EXPECT_THAT(ignored_patterns(text_like(pattern)), IsEmpty()) << pattern;
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(SchemaPatterns, ThatItCannotAreNamedOnceEach) {
    const Json schema = {
        {"type", "object"},
        {"properties",
         {{"a", text_like("[0-9]+")}, {"b", text_like("^(?=x)y$")}, {"pattern", text_like("^z$")}}},
        {"items", {text_like("[0-9]+")}},
        {"default", {{"pattern", "no schema"}}}};
    testing::internal::CaptureStderr();
    EXPECT_THAT(ignored_patterns(schema), ElementsAre("[0-9]+", "^(?=x)y$"));
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(SchemaPatterns, ThatAreNotKeptToAreAWarningOfTheRequest) {
    constexpr auto json = R"({"json_schema": {"type": "string", "pattern": "[0-9]+"}})";
    Notes notes;
    ASSERT_TRUE(with_parameters({}, json, Level::request, notes).ok());
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_EQ(notes[0].parameter, "json_schema");
    EXPECT_THAT(notes[0].message, HasSubstr("the pattern \"[0-9]+\" is not kept to"));
}

}  // namespace
}  // namespace headrace::llm
