#include "doors/serve/request/tools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doors/serve/api_error_of.h"

namespace headrace::serve {
namespace {

using testing::HasSubstr;

Json tools_named(std::initializer_list<std::string> names) {
    Json tools = Json::array();
    for (const std::string& name : names)
        tools.push_back({{"type", "function"}, {"function", {{"name", name}}}});
    return {{"tools", tools}};
}

ApiError refusal_of_names(std::initializer_list<std::string> names, std::size_t longest) {
    Parameters parameters;
    const Json body = tools_named(names);
    return error_of([&] { read_tools(Fields(body), longest, parameters); });
}

TEST(ToolNames, HaveTheLettersAndTheLengthOfTheirApi) {
    for (const char* wrong : {"", "get weather", "a.b", "n\xc3\xa4me", "f()"})
        EXPECT_EQ(refusal_of_names({wrong}, kLongestToolName).field, "tools[0].function.name") << wrong;
    EXPECT_EQ(refusal_of_names({"f", std::string(65, 'x')}, 64).field, "tools[1].function.name");
    EXPECT_THAT(refusal_of_names({"a.b"}, 64).what(), HasSubstr("^[a-zA-Z0-9_-]{1,64}$"));
    Parameters parameters;
    const Json right = tools_named({"get_weather-2", std::string(64, 'X')});
    EXPECT_NO_THROW(read_tools(Fields(right), 64, parameters));
}

TEST(ToolNames, AreUniqueWhereTheApiSaysSo) {
    const ApiError error = refusal_of_names({"add", "find", "add"}, 64);
    EXPECT_EQ(error.field, "tools");
    EXPECT_THAT(error.what(), HasSubstr("'add'"));
    Parameters parameters;
    const Json any = tools_named({"a.b", "a.b"});
    EXPECT_NO_THROW(read_tools(Fields(any), kAnyToolName, parameters));
}

TEST(ToolNames, OfFunctionsAreNamedAsThese) {
    Parameters parameters;
    const auto refusal = [&](const char* functions) {
        const Json body = Json::parse(functions);
        return error_of([&] { read_functions(Fields(body), 64, parameters); }).field;
    };
    EXPECT_EQ(refusal(R"({"functions": [{"name": "a b"}]})"), "functions[0].name");
    EXPECT_EQ(refusal(R"({"functions": [{"name": "f"}, {"name": "f"}]})"), "functions");
}

constexpr const char* kCall = R"({"role": "assistant", "tool_calls": [
    {"id": "a", "function": {"name": "f", "arguments": "{}"}},
    {"id": "b", "function": {"name": "f", "arguments": "{}"}}]})";

void check(const std::string& messages) { check_tool_messages(Json::parse("[" + messages + "]")); }

std::string answer_to(const std::string& id) {
    return R"({"role": "tool", "tool_call_id": ")" + id + R"(", "content": "5"})";
}

TEST(ToolMessages, AnswerTheCallsBeforeThem) {
    const std::string call = kCall, question = R"({"role": "user", "content": "?"})";
    EXPECT_NO_THROW(check(call + "," + answer_to("b") + "," + answer_to("a") + "," + question));
    EXPECT_NO_THROW(check(question + "," + R"({"role": "function", "name": "f", "content": "5"})"));
    EXPECT_EQ(error_of([&] { check(question + "," + answer_to("a")); }).field, "messages[1].role");
    EXPECT_EQ(error_of([&] { check(call + "," + answer_to("c")); }).field, "messages[1].tool_call_id");
    EXPECT_EQ(
        error_of([&] {
            check(call + "," + answer_to("a") + "," + answer_to("b") + "," + question + "," + answer_to("a"));
        }).field,
        "messages[4].role");
}

TEST(ToolMessages, AreThereForEveryCall) {
    const std::string call = kCall, question = R"({"role": "user", "content": "?"})";
    for (const std::string& messages : {call, call + "," + question, call + "," + answer_to("a"),
                                        call + "," + answer_to("a") + "," + question}) {
        const ApiError error = error_of([&] { check(messages); });
        EXPECT_EQ(error.field, "messages[0].tool_calls") << messages;
    }
    EXPECT_THAT(error_of([&] { check(call + "," + answer_to("a")); }).what(), HasSubstr("'b'"));
}

TEST(ToolMessages, WithoutIdsAnswerInTurn) {
    const std::string anonymous = R"({"role": "tool", "content": "5"})";
    EXPECT_NO_THROW(check(std::string(kCall) + "," + anonymous + "," + anonymous));
    EXPECT_EQ(error_of([&] { check(std::string(kCall) + "," + anonymous); }).field, "messages[0].tool_calls");
    EXPECT_NO_THROW(
        check(R"({"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]},)" + answer_to("x")));
}

}  // namespace
}  // namespace headrace::serve
