#include "doors/serve/api/anthropic_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doors/serve/api_error_of.h"

namespace headrace::serve {
namespace {

using testing::HasSubstr;

ChatBody read(const std::string& more, const MessageRules& rules = {}) {
    const std::string body =
        R"({"model": "m", "max_tokens": 2000, "messages": [{"role": "user", "content": "?"}])" + more + "}";
    return anthropic_request(Json::parse(body), ModelInfo(), rules);
}

ApiError body_refusal(const std::string& more) {
    return error_of([&] { read(more); });
}

std::string with_tool(const std::string& name, const std::string& schema = R"({"type": "object"})") {
    return R"(, "tools": [{"name": ")" + name + R"(", "input_schema": )" + schema + "}]";
}

std::string thinking(int budget) {
    return R"(, "thinking": {"type": "enabled", "budget_tokens": )" + std::to_string(budget) + "}";
}

TEST(AnthropicTools, HaveNamesAndSchemasThatTheirApiTakes) {
    for (const std::string& name : {std::string("a b"), std::string(129, 'x'), std::string()})
        EXPECT_EQ(body_refusal(with_tool(name)).field, "tools.0.name") << name;
    EXPECT_NO_THROW(read(with_tool(std::string(128, 'x'))));
    for (const char* schema : {R"({"type": "string"})", R"({})", R"({"type": 3})"})
        EXPECT_EQ(body_refusal(with_tool("f", schema)).field, "tools.0.input_schema.type") << schema;
    const ApiError twice = body_refusal(R"(, "tools": [{"name": "f", "input_schema": {"type": "object"}},
                                                  {"name": "f", "input_schema": {"type": "object"}}])");
    EXPECT_EQ(twice.field, "tools");
    EXPECT_THAT(twice.what(), HasSubstr("'f' comes twice"));
    EXPECT_EQ(body_refusal(with_tool("f") + R"(, "tool_choice": {"type": "tool", "name": "g"})").field,
              "tool_choice");
}

TEST(AnthropicThinking, HasABudgetBelowTheAnswers) {
    EXPECT_EQ(body_refusal(thinking(1023)).field, "thinking.budget_tokens");
    EXPECT_EQ(body_refusal(thinking(2000)).field, "thinking.budget_tokens");
    EXPECT_THAT(body_refusal(thinking(2000)).what(), HasSubstr("less than `max_tokens`, which is 2000"));
    EXPECT_NO_THROW(read(thinking(1024)));
    EXPECT_NO_THROW(read(thinking(1999)));
    EXPECT_NO_THROW(read(thinking(5000), {.needs_limit = false})) << "nothing is written";
}

TEST(AnthropicThinking, BetweenCallsMayBeLonger) {
    const MessageRules interleaved{.interleaves_thinking = true};
    EXPECT_NO_THROW(read(thinking(5000) + with_tool("f"), interleaved));
    EXPECT_EQ(error_of([&] { read(thinking(5000), interleaved); }).field, "thinking.budget_tokens");
}

TEST(AnthropicStops, AreTextsThatCanBeSeen) {
    EXPECT_EQ(body_refusal(R"(, "stop_sequences": ["a", ""])").field, "stop_sequences.1");
    EXPECT_EQ(body_refusal(R"(, "stop_sequences": [" \n\t"])").field, "stop_sequences.0");
    EXPECT_NO_THROW(read(R"(, "stop_sequences": ["a", "\n\nHuman:"])"));
}

}  // namespace
}  // namespace headrace::serve
