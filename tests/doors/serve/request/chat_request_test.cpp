#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/parameter_json.h"
#include "doors/serve/api/vectors.h"
#include "doors/serve/models/served_model.h"
#include "doors/serve/request/chat_request.h"

namespace headrace::serve {
namespace {

using testing::HasSubstr;

template <class Call>
ApiError error_of(Call call) {
    try {
        call();
    } catch (const ApiError& error) {
        return error;
    }
    ADD_FAILURE() << "nothing was thrown";
    return {0, "", ""};
}

TEST(Bodies, ThatAreNoObjectsAreErrors) {
    EXPECT_THAT(error_of([] { parse_body("{"); }).what(), HasSubstr("column"));
    EXPECT_THAT(error_of([] { parse_body("[]"); }).what(), HasSubstr("a list"));
    EXPECT_THAT(error_of([] { parse_body(""); }).what(), HasSubstr("no JSON"));
    EXPECT_THAT(error_of([] { parse_body("{\"a\": \"\xff\"}"); }).what(), HasSubstr("UTF-8"));
    const std::string deep = "{\"a\": " + std::string(100'000, '[') + std::string(100'000, ']') + "}";
    EXPECT_THAT(error_of([&] { parse_body(deep); }).what(), HasSubstr("64 levels"));
    EXPECT_EQ(parse_body("{\"a\": 1}")["a"], 1);
}

TEST(Fields, OfAWrongKindAreNamed) {
    const Json body = {{"text", 1}, {"number", "x"}, {"large", 9}, {"nothing", nullptr}, {"half", 0.5}};
    const Fields fields(body, "messages[2]");
    EXPECT_EQ(error_of([&] { fields.text("text"); }).field, "messages[2].text");
    EXPECT_THAT(error_of([&] { fields.text("text"); }).what(), HasSubstr("a number; it must be a text"));
    EXPECT_THAT(error_of([&] { fields.integer("number", 0, 5); }).what(), HasSubstr("an integer"));
    EXPECT_THAT(error_of([&] { fields.integer("half", 0, 5); }).what(), HasSubstr("an integer"));
    EXPECT_THAT(error_of([&] { fields.integer("large", 0, 5); }).what(), HasSubstr("from 0 to 5"));
    EXPECT_THAT(error_of([&] { fields.required_text("none"); }).what(), HasSubstr("is missing"));
    EXPECT_EQ(fields.text("nothing"), std::nullopt);
}

TEST(ParameterJson, KeepsValuesAndTheirOrder) {
    const char* text = R"({"b":2.5,"a":"text","c":{"d":null,"e":[true,-7]},"f":9223372036854775807})";
    const ParameterValue value = parameter_of(Json::parse(text));
    EXPECT_EQ(value, ParameterValue::from_json(text));
    EXPECT_EQ(text_of(json_object_of<Json>(std::get<Parameters>(value))), text);
    EXPECT_EQ(parameter_of(Json(18446744073709551615u)), ParameterValue(18446744073709551615.0));
}

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
         "messages[0].content[0].type"},
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

constexpr const char* two_tools = R"("tools": [{"type": "function", "function": {"name": "f"}},
    {"type": "function", "function": {"name": "g"}}])";

/// The body of a chat with two tools and that choice.
std::string choosing(std::string_view choice) {
    return fmt::format(R"({{"messages": [{{"role": "user", "content": "x"}}], {}, "tool_choice": {}}})",
                       two_tools, choice);
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

TEST(Vectors, AreWrittenAsNumbersOrBase64) {
    EXPECT_EQ(number_list({0.5f, -1.0f, 0.1f}), "[0.5,-1,0.1]");
    EXPECT_EQ(base64_of({1.0f}), "AACAPw==");
    EXPECT_EQ(base64_of({1.0f, 2.0f}), "AACAPwAAAEA=");
    EXPECT_EQ(base64_of({1.0f, 2.0f, 3.0f}), "AACAPwAAAEAAAEBA");
    EXPECT_EQ(base64_of({}), "");
}

TEST(Messages, NameNoPathOfThisMachine) {
    EXPECT_EQ(without_paths("/srv/models/a.gguf: lost; /srv/models/a.gguf", "/srv/models/a.gguf"),
              "a.gguf: lost; a.gguf");
    EXPECT_EQ(without_paths("a.gguf: lost", "a.gguf"), "a.gguf: lost");
    EXPECT_EQ(without_paths("lost", ""), "lost");
}

}  // namespace
}  // namespace headrace::serve
