#include "doors/serve/request/chat_request.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "doors/serve/api_error_of.h"

namespace headrace::serve {
namespace {

TEST(Parameters, ThatAreObjectsMustBeTakenAsSuch) {
    const auto check = [](const char* name) {
        return [=] { check_values({{name, Parameters{{"a", 1}}}, {"temperature", 1}}); };
    };
    for (const char* name : {"seed", "stop", "sampling", "top-k"})
        EXPECT_EQ(error_of(check(name)).field, name);
    for (const char* name : {"json_schema", "logit_bias", "chat_template_kwargs", "unknown"})
        EXPECT_NO_THROW(check(name)()) << name;
}

ChatBody chat(const char* text) { return chat_body(Json::parse(text), ModelInfo()); }

TEST(ChatBodies, BecomeMessages) {
    const ChatBody body = chat(R"({"messages": [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "42"}], "temperature": 0.5, "user": "me"})");
    ASSERT_EQ(body.request.messages.size(), 4u);
    EXPECT_EQ(body.request.messages[0].role, "system");
    EXPECT_EQ(body.request.messages[1].parts, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(body.request.messages[2].tool_calls[0], (ToolCall{"f", "{}", "c1"}));
    EXPECT_EQ(body.request.messages[3].tool_call_id, "c1");
    EXPECT_EQ(std::get<double>(*body.request.parameters.find("temperature")), 0.5);
    EXPECT_EQ(body.request.parameters.find("user"), nullptr);
}

TEST(ChatBodies, ThatAreWrongSayWhere) {
    const std::pair<const char*, const char*> wrong[] = {
        {R"({})", "messages"},
        {R"({"messages": null})", "messages"},
        {R"({"messages": "x"})", "messages"},
        {R"({"messages": []})", "messages"},
        {R"({"messages": [1]})", "messages[0]"},
        {R"({"messages": [{"role": 1}]})", "messages[0].role"},
        {R"({"messages": [{"role": "king", "content": "x"}]})", "messages[0].role"},
        {R"({"messages": [{"role": "user"}]})", "messages[0].content"},
        {R"({"messages": [{"role": "user", "content": 1}]})", "messages[0].content"},
        {R"({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})",
         "messages[0].content[0].image_url"},
        {R"({"messages": [{"role": "user", "content": [{"type": "file"}]}]})", "messages[0].content[0].type"},
        {R"({"messages": [{"role": "user", "content": "x"}], "n": 0})", "n"},
        {R"({"messages": [{"role": "user", "content": "x"}], "stream": 1})", "stream"},
        {R"({"messages": [{"role": "user", "content": "x"}], "top_logprobs": 2})", "top_logprobs"},
        {R"({"messages": [{"role": "user", "content": "x"}], "tools": [{"type": "function", "function": {"name": "f"}}],
             "tool_choice": {"type": "function", "function": {"name": "g"}}})",
         "tool_choice"}};
    for (const auto& [text, field] : wrong) EXPECT_EQ(error_of([&] { chat(text); }).field, field) << text;
}

TEST(ChatBodies, ThatEndWithTheAssistantAreGoneOnWith) {
    const auto continues = [](const char* text) {
        const ChatBody body = chat(text);
        const ParameterValue* value = body.request.parameters.find("continue_final_message");
        return value && std::get<bool>(*value);
    };
    EXPECT_TRUE(continues(
        R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})"));
    EXPECT_FALSE(continues(R"({"messages": [{"role": "user", "content": "a"}]})"));
    EXPECT_EQ(
        error_of([] {
            chat(R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
                                        {"role": "assistant", "content": "c"}]})");
        }).field,
        "messages");
}

TEST(ToolChoices, ThatNameAFunctionLeaveOnlyThat) {
    const ChatBody body = chat(R"({"messages": [{"role": "user", "content": "x"}], "tools": [
        {"type": "function", "function": {"name": "f"}}, {"type": "function", "function": {"name": "g"}}],
        "tool_choice": {"type": "function", "function": {"name": "g"}}})");
    EXPECT_EQ(std::get<std::vector<ParameterValue>>(*body.request.parameters.find("tools")).size(), 1u);
    EXPECT_EQ(std::get<std::string>(*body.request.parameters.find("tool_choice")), "required");
}

constexpr const char* kTwoTools = R"("tools": [{"type": "function", "function": {"name": "f"}},
    {"type": "function", "function": {"name": "g"}}])";

/// The body of a chat with two tools and that choice.
std::string choosing(std::string_view choice) {
    return fmt::format(R"({{"messages": [{{"role": "user", "content": "x"}}], {}, "tool_choice": {}}})",
                       kTwoTools, choice);
}

TEST(ToolChoices, ThatListAllowedToolsLeaveThose) {
    const std::pair<const char*, const char*> shapes[] = {
        {R"({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [
             {"type": "function", "function": {"name": "g"}}]}})",
         "required"},
        {R"({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "g"}]})",
         "auto"}};
    for (const auto& [choice, mode] : shapes) {
        const ChatBody body = chat(choosing(choice).c_str());
        const auto& tools = std::get<std::vector<ParameterValue>>(*body.request.parameters.find("tools"));
        ASSERT_EQ(tools.size(), 1u);
        const auto* function = std::get<Parameters>(tools[0]).find("function");
        EXPECT_EQ(std::get<std::string>(*std::get<Parameters>(*function).find("name")), "g");
        EXPECT_EQ(std::get<std::string>(*body.request.parameters.find("tool_choice")), mode);
    }
}

TEST(ToolChoices, ThatCannotBeHadAreNamed) {
    const std::pair<const char*, const char*> wrong[] = {
        {R"("any")", "tool_choice"},
        {R"([])", "tool_choice"},
        {R"({})", "tool_choice"},
        {R"({"type": "function"})", "tool_choice.name"},
        {R"({"type": "custom", "name": "f"})", "tool_choice.type"},
        {R"({"type": "function", "function": {"name": "h"}})", "tool_choice"},
        {R"({"type": "allowed_tools", "mode": "auto"})", "tool_choice.tools"},
        {R"({"type": "allowed_tools", "mode": "auto", "tools": [{"name": "h"}]})", "tool_choice"}};
    for (const auto& [choice, field] : wrong)
        EXPECT_EQ(error_of([&] { chat(choosing(choice).c_str()); }).field, field) << choice;
    EXPECT_EQ(error_of([] {
                  chat(R"({"messages": [{"role": "user", "content": "x"}], "tool_choice": "none"})");
              }).field,
              "tool_choice");
}

TEST(Functions, AreToolsByTheirFirstName) {
    const ChatBody body = chat(R"({"messages": [{"role": "user", "content": "x"}],
        "functions": [{"name": "f"}, {"name": "g"}], "function_call": {"name": "f"}})");
    EXPECT_TRUE(body.options.uses_functions);
    EXPECT_EQ(std::get<std::vector<ParameterValue>>(*body.request.parameters.find("tools")).size(), 1u);
    EXPECT_EQ(std::get<std::string>(*body.request.parameters.find("tool_choice")), "required");
    EXPECT_EQ(error_of([] {
                  chat(R"({"messages": [{"role": "user", "content": "x"}], "functions": [{"name": "f"}],
                           "function_call": "required"})");
              }).field,
              "function_call");
}

}  // namespace
}  // namespace headrace::serve
