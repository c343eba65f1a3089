#include "doors/serve/api/response_request.h"

#include <gtest/gtest.h>

#include "doors/serve/api_error_of.h"

namespace headrace::serve {
namespace {

ResponseChat chat(const std::string& items, const std::string& more = "") {
    return chat_of_response(Json::parse("{\"input\": [" + items + "]" + more + "}"));
}

std::string call(const std::string& id) {
    return R"({"type": "function_call", "call_id": ")" + id + R"(", "name": "f", "arguments": "{}"})";
}
std::string output(const std::string& id) {
    return R"({"type": "function_call_output", "call_id": ")" + id + R"(", "output": "5"})";
}
constexpr const char* kAsked = R"({"role": "user", "content": "?"},)";

TEST(ResponseItems, OfCallsAndOutputsBelongTogether) {
    const auto field = [](const std::string& items) { return error_of([&] { chat(kAsked + items); }).field; };
    EXPECT_NO_THROW(chat(kAsked + call("a") + "," + call("b") + "," + output("b") + "," + output("a")));
    EXPECT_NO_THROW(chat(kAsked + call("a") + R"(,{"type": "reasoning", "content": []},)" + output("a")));
    EXPECT_EQ(field(call("a")), "input[1].call_id");
    EXPECT_EQ(field(call("a") + "," + call("b") + "," + output("a")), "input[2].call_id");
    EXPECT_EQ(field(output("a")), "input[1].call_id");
    EXPECT_EQ(field(output("a") + "," + call("a")), "input[1].call_id");
    EXPECT_NO_THROW(chat(output("a"), R"(, "session": "mine")")) << "which may hold the call";
}

TEST(ResponseItems, AreWhatErrorsOfTheirMessagesName) {
    const FieldNames names =
        chat(kAsked + call("a") + "," + call("b") + "," + output("a") + "," + output("b"),
             R"(, "instructions": "Be brief.")")
            .names;
    const auto shown = [&](const char* field) {
        return renamed(wrong_field(field, "is wrong"), names).field;
    };
    EXPECT_EQ(shown("messages[1].content"), "input[0].content");
    EXPECT_EQ(shown("messages[2].tool_calls[1].function.arguments"), "input[2].arguments");
    EXPECT_EQ(shown("messages[4].content"), "input[4].content");
    EXPECT_EQ(shown("max_tokens"), "max_output_tokens");
}

TEST(ResponseTools, HaveNamesAsChatsHave) {
    EXPECT_EQ(error_of([] {
                  chat(R"({"role": "user", "content": "?"})",
                       R"(, "tools": [{"type": "function", "name": "a b"}])");
              }).field,
              "tools[0].name");
}

TEST(ResponseSessions, HaveBothNames) {
    for (const char* name : {"session", "session_id"})
        EXPECT_EQ(chat(R"({"role": "user", "content": "?"})", ", \"" + std::string(name) + "\": \"mine\"")
                      .chat.at(name),
                  "mine");
}

}  // namespace
}  // namespace headrace::serve
