#include "doors/serve/api/anthropic_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doors/serve/api_error_of.h"

namespace headrace::serve {
namespace {

using testing::HasSubstr;

std::vector<Message> messages(const std::string& list, const std::string& more = "") {
    const Json body = Json::parse("{\"messages\": [" + list + "]" + more + "}");
    return anthropic_messages_of(Fields(body));
}

ApiError list_refusal(const std::string& list) {
    return error_of([&] { messages(list); });
}

constexpr const char* kQuestion = R"({"role": "user", "content": "?"},)";

std::string use(const std::string& id) {
    return R"({"type": "tool_use", "id": ")" + id + R"(", "name": "f", "input": {}})";
}
std::string result(const std::string& id) {
    return R"({"type": "tool_result", "tool_use_id": ")" + id + R"(", "content": "5"})";
}
std::string by(const std::string& role, const std::string& blocks) {
    return R"({"role": ")" + role + R"(", "content": [)" + blocks + "]}";
}

TEST(AnthropicTexts, SaySomething) {
    const std::string text = R"({"type": "text", "text": "a"})", empty = R"({"type": "text", "text": ""})",
                      blank = R"({"type": "text", "text": " \n"})";
    EXPECT_EQ(list_refusal(by("user", text + "," + empty)).field, "messages.0.content.1.text");
    EXPECT_THAT(list_refusal(by("user", blank)).what(), HasSubstr("must contain non-whitespace text"));
    EXPECT_EQ(error_of([&] { messages(by("user", text), ", \"system\": [" + empty + "]"); }).field,
              "system.0.text");
    EXPECT_EQ(list_refusal(R"({"role": "user", "content": ""})").field, "messages.0.content");
    EXPECT_EQ(list_refusal(R"({"role": "assistant", "content": []},)" + by("user", text)).field,
              "messages.0.content");
    EXPECT_EQ(messages(kQuestion + std::string(R"({"role": "assistant", "content": ""})")).size(), 2u);
}

TEST(AnthropicTexts, OfAToolsResultMayBeEmpty) {
    const std::string silent =
        R"({"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": ""}]})";
    EXPECT_NO_THROW(messages(kQuestion + by("assistant", use("a")) + "," + by("user", silent)));
}

TEST(AnthropicTexts, ThatAreGoneOnWithEndWithNoSpace) {
    const std::string spaced = R"({"role": "assistant", "content": "It is "})";
    EXPECT_EQ(list_refusal(kQuestion + spaced).field, "messages.1.content");
    EXPECT_EQ(list_refusal(kQuestion + by("assistant", R"({"type": "text", "text": "It is\n"})")).field,
              "messages.1.content.0.text");
    EXPECT_NO_THROW(messages(kQuestion + spaced + R"(,{"role": "user", "content": "Go on"})"));
}

TEST(AnthropicToolUses, HaveAResultInTheNextTurn) {
    const std::string calls = kQuestion + by("assistant", use("a") + "," + use("b"));
    const std::string text = R"({"type": "text", "text": "And?"})";
    EXPECT_NO_THROW(messages(calls + "," + by("user", result("b") + "," + result("a") + "," + text)));
    EXPECT_NO_THROW(messages(calls + "," + by("user", result("a")) + "," + by("user", result("b"))))
        << "turns of one role are one";
    for (const std::string& after :
         {std::string(), "," + by("user", text), "," + by("user", result("a")),
          "," + by("user", result("a")) + "," + by("assistant", text) + "," + by("user", result("b"))})
        EXPECT_EQ(list_refusal(calls + after).field, "messages.1") << after;
    EXPECT_THAT(list_refusal(calls + "," + by("user", result("a"))).what(),
                HasSubstr("immediately after: b."));
}

TEST(AnthropicToolUses, AreInASessionPerhaps) {
    const std::string session = R"(, "session": "mine")";
    EXPECT_NO_THROW(messages(by("user", result("a")), session));
    EXPECT_NO_THROW(messages(kQuestion + by("assistant", use("a")), session));
}

TEST(AnthropicToolResults, AreOfOneUseEach) {
    const std::string calls = kQuestion + by("assistant", use("a"));
    EXPECT_EQ(list_refusal(calls + "," + by("user", result("c"))).field, "messages.2.content.0.tool_use_id");
    EXPECT_EQ(list_refusal(calls + "," + by("user", result("a") + "," + result("a"))).field,
              "messages.2.content.1.tool_use_id");
    EXPECT_EQ(list_refusal(by("user", result("a"))).field, "messages.0.content.0.tool_use_id");
    EXPECT_EQ(list_refusal(kQuestion + by("assistant", use("a") + "," + use("a"))).field,
              "messages.1.content.1.id");
    EXPECT_EQ(list_refusal(calls + "," + by("user", result("a")) + "," + by("assistant", use("a"))).field,
              "messages.3.content.0.id");
}

}  // namespace
}  // namespace headrace::serve
