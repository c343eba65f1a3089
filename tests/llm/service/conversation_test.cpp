#include "llm/service/conversation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "llm/calling_template.h"
#include "llm/tiny_model.h"

namespace headrace::llm {
namespace {

using testing::HasSubstr;
using testing::Not;

/// A template of a model that thinks first, unless it is told not to.
constexpr const char* kThinking = R"({%- for m in messages -%}
<|im_start|>{{ m.role }}
{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}<|im_start|>assistant
{% if enable_thinking %}<think>{% else %}<think></think>{% endif %}{%- endif -%})";

constexpr const char* kWeather = R"([{"type": "function", "function": {
    "name": "get_weather", "description": "tells the weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}])";

Reply ask(const Parameters& model, const Parameters& request = {}, const char* text = "What is 2+3?") {
    Parameters config = {{"threads", 1}, {"n_ctx", 512}, {"temp", 0}, {"n_predict", 40}};
    for (const auto& [name, value] : model.entries()) config.set(name, value);
    return LanguageModel::load(tiny_model(), {.parameters = config}).generate(text, request);
}

TEST(Conversation, RefusesATextThatCannotFitBeforeItIsReadAsTokens) {
    const auto engine = tiny_engine();
    const int size = engine->context_size();
    RequestSettings settings = tiny_settings().request;
    for (const char* chat : {"on", "off", "auto"}) {
        settings.chat = chat;
        const auto prompt = make_prompt(engine->model(), {}, std::string(64 << 20, 'x'), size, settings);
        ASSERT_FALSE(prompt.ok()) << chat;
        EXPECT_EQ(prompt.error().code, Code::prompt_too_long);
        EXPECT_THAT(prompt.error().message, HasSubstr("67108864 bytes, which are more than 512 tokens"));
    }
    // Earlier messages are left out, however long they are.
    const Messages history = {{"user", std::string(4 << 20, 'x')}, {"assistant", "Yes."}};
    const auto prompt = make_prompt(engine->model(), history, "What is 2+3?", size, settings);
    ASSERT_TRUE(prompt.ok()) << prompt.error().message;
    EXPECT_EQ(prompt.value().dropped, 2u);
    settings.system_prompt = std::string(4 << 20, 'x');
    EXPECT_EQ(make_prompt(engine->model(), history, "Hi", size, settings).error().code,
              Code::prompt_too_long);
}

TEST(ConversationThreads, WaitForNobodysLongTemplate) {
    using Clock = std::chrono::steady_clock;
    const auto engine = tiny_engine();
    const auto prompt_within = [&](const std::string& chat_template) {
        RequestSettings settings = tiny_settings().request;
        settings.own_template = chat_template;
        const auto start = Clock::now();
        EXPECT_TRUE(make_prompt(engine->model(), {}, "Hi", engine->context_size(), settings).ok());
        return Clock::now() - start;
    };
    std::atomic<bool> is_over = false;
    Clock::duration of_long{}, longest{};
    int count = 0;
    std::thread thread([&] {
        of_long = prompt_within("{% for i in range(3000) %}{% set x = i %}{% endfor %}Hi");
        is_over = true;
    });
    for (; !is_over; ++count) longest = std::max(longest, prompt_within("Hi"));
    thread.join();
    EXPECT_GT(count, 2) << "while the long one was read";
    EXPECT_LT(longest, of_long * 2 / 3);
}

TEST(Conversation, NoTextHasMoreBytesThanItsTokensCanHave) {
    const auto engine = tiny_engine();
    const Model& model = engine->model();
    std::vector<std::string> texts = {std::string(5000, ' '), std::string(5000, 'x'), "<|im_end|>", ""};
    for (llama_token token = 0; token < model.vocabulary_size(); ++token) {
        std::string text;
        for (int i = 0; i < 20; ++i) text += model.piece(token, true);
        texts.push_back(text);
    }
    for (unsigned character = 0x80; character < 0x800; character += 7)
        texts.push_back(
            {static_cast<char>(0xC0 | character >> 6), static_cast<char>(0x80 | (character & 0x3F))});
    std::size_t longest = 0;
    for (const std::string& text : texts) {
        const std::size_t tokens = model.tokenize(text, false, true).size();
        EXPECT_GE(model.most_bytes(tokens), text.size()) << text;
        if (tokens > 0) longest = std::max(longest, text.size() / tokens);
    }
    EXPECT_LE(model.most_bytes(1), 2 * longest) << "the limit is near what there is";
}

TEST(Conversation, LeavesOutTheFewestOfManyMessages) {
    const auto engine = tiny_engine();
    const int context = engine->context_size(), room = context - 32;
    Messages history = {{"system", "Be brief."}};
    for (int i = 0; i < 2000; ++i) {
        history.push_back({"user", "What is " + std::to_string(i) + "+1?"});
        history.push_back({"assistant", std::to_string(i + 1)});
    }
    const auto written = [&](const Messages& messages) {
        RequestSettings settings;
        settings.chat = "on";
        return make_prompt(engine->model(), messages, "What is 2+3?", context, settings).value();
    };
    const Prompt prompt = written(history);
    EXPECT_LE(prompt.tokens.size(), static_cast<std::size_t>(room));
    EXPECT_EQ(prompt.messages.size() + prompt.dropped, history.size() + 1);
    EXPECT_EQ(prompt.messages.front().content, "Be brief.");
    EXPECT_EQ(prompt.messages[1].role, "user");
    history.erase(history.begin() + 1, history.begin() + 1 + static_cast<std::ptrdiff_t>(prompt.dropped));
    EXPECT_EQ(written(history).dropped, 0u);
    history.insert(history.begin() + 1, {{"user", "What is 7+7?"}, {"assistant", "14"}});
    EXPECT_EQ(written(history).dropped, 2u) << "one more does not fit";
}

TEST(Conversation, LeavesOutNoCallWithoutItsResults) {
    const auto engine = tiny_engine();
    RequestSettings settings = tiny_settings().request;
    const std::string long_text(300, 'x');
    const Message call{.role = "assistant", .tool_calls = {{"f", "{}", "c"}}};
    Messages messages;
    for (int i = 0; i < 4; ++i)
        messages.insert(messages.end(), {{"user", long_text}, call, {"tool", "5"}, {"assistant", "Five."}});
    messages.insert(messages.end(), {{"user", "And?"}, call, {"tool", "7"}});
    const auto prompt = make_prompt(engine->model(), messages, engine->context_size(), settings);
    ASSERT_TRUE(prompt.ok()) << prompt.error().message;
    EXPECT_GT(prompt.value().dropped, 0u);
    EXPECT_EQ(prompt.value().dropped % 4, 0u) << "whole turns";
    EXPECT_EQ(prompt.value().messages.front().role, "user");
    // A turn that is too long itself keeps its last calls, with their results.
    messages = {{"user", "Begin."}};
    for (int i = 0; i < 40; ++i) messages.insert(messages.end(), {call, {"tool", long_text}});
    const auto shorter = make_prompt(engine->model(), messages, engine->context_size(), settings);
    ASSERT_TRUE(shorter.ok()) << shorter.error().message;
    EXPECT_FALSE(shorter.value().messages.front().tool_calls.empty());
    EXPECT_EQ(shorter.value().messages.size() % 2, 0u);
}

TEST(Conversation, EndsThoughtsThatReachTheirBudget) {
    Parameters request = {{"ignore_eos", true}};
    EXPECT_THAT(ask({{"chat_template", kThinking}}, request).text, Not(HasSubstr("</think>")));
    request.set("reasoning_budget_tokens", 3);
    request.set("reasoning_budget_message", "Enough.");
    const Reply reply = ask({{"chat_template", kThinking}}, request);
    EXPECT_THAT(reply.text, HasSubstr("Enough.</think>"));
    EXPECT_THAT(reply.reasoning, HasSubstr("Enough."));
    EXPECT_THAT(reply.content, Not(HasSubstr("Enough.")));
}

TEST(Conversation, CallsAToolWhereItMustOrMay) {
    const auto reply_for = [](const char* text, const char* choice) {
        Parameters request = Parameters::from_json(fmt::format(R"({{"tools": {}}})", kWeather));
        request.set("tool_choice", choice);
        const Reply reply = ask({{"chat_template", kCalling}}, request, text);
        EXPECT_THAT(reply.text, Not(HasSubstr("assistant"))) << "the prompt's end is not written again";
        return reply;
    };
    for (const char* choice : {"required", "auto"}) {
        const Reply reply = reply_for("What is the weather in Rome?", choice);
        ASSERT_EQ(reply.tool_calls.size(), 1u) << choice << reply.text;
        EXPECT_EQ(reply.tool_calls[0].name, "get_weather");
        EXPECT_EQ(nlohmann::json::parse(reply.tool_calls[0].arguments), nlohmann::json({{"city", "Rome"}}));
    }
    EXPECT_EQ(reply_for("What is 2+3?", "auto").stop_reason, StopReason::end_of_answer);
}

constexpr const char* kDice = R"({"tools": [{"type": "function", "function": {"name": "roll", "parameters":
    {"type": "object", "properties": {"sides": {"type": "integer"}}, "required": ["sides"]}}}]})";

TEST(Conversation, WritesNothingButTheCallThatIsForced) {
    Parameters request = Parameters::from_json(kDice);
    request.set("n_predict", 100);
    EXPECT_TRUE(ask({{"chat_template", kCalling}}, request, "What is 2+3?").tool_calls.empty());
    request.set("tool_choice", "required");
    for (const char* format : {"deepseek", "none"}) {
        request.set("reasoning_format", format);
        const Reply reply = ask({{"chat_template", kCalling}}, request, "What is 2+3?");
        EXPECT_EQ(reply.text.find_first_not_of(" \n"), reply.text.find("<tool_call>")) << reply.text;
        ASSERT_EQ(reply.tool_calls.size(), 1u) << reply.text;
        EXPECT_EQ(reply.tool_calls[0].name, "roll");
        EXPECT_TRUE(nlohmann::json::parse(reply.tool_calls[0].arguments)["sides"].is_number_integer());
        EXPECT_EQ(reply.stop_reason, StopReason::end_of_answer);
    }
}

TEST(Conversation, ForcesNoCallWhereTheTemplateHasNone) {
    Parameters request = Parameters::from_json(kDice);
    request.set("tool_choice", "required");
    try {
        ask({}, request);
        ADD_FAILURE() << "the answer would be any text";
    } catch (const Exception& error) {
        EXPECT_EQ(error.code(), Code::invalid_argument);
        EXPECT_EQ(error.parameter(), "tool_choice");
    }
}

TEST(Conversation, IsRenderedByItsTemplateOrByTheKindThatLlamaCppKnows) {
    // llama.cpp takes this for ChatML, whatever else the template says.
    const std::string other = "<|im_start|>user\nWhat is 3+4?<|im_end|>\n<|im_start|>assistant{{ '\\n' }}";
    EXPECT_EQ(ask({{"chat_template", other}}).text, "3+4=7");
    EXPECT_EQ(ask({{"chat_template", other}, {"jinja", false}}).text, "2+3=5");
}

}  // namespace
}  // namespace headrace::llm
