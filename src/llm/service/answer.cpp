#include "llm/service/answer.h"

#include <common/chat.h>

#include <exception>
#include <utility>

namespace headrace::llm {

namespace {

/// What `now` has more than `shown`, which then has it, too; nothing where it does not begin with that: a
/// part that more text made something else.
std::string take_more(std::string& shown, const std::string& now) {
    if (!now.starts_with(shown)) return {};
    std::string more = now.substr(shown.size());
    shown = now;
    return more;
}

}  // namespace

/// How a prompt's template writes answers.
struct AnswerReader::Parser {
    common_chat_parser_params params;
    common_chat_msg shown;  ///< what the caller has, or wrote itself

    Parser(const common_chat_params& format, const RequestSettings& settings) : params(format) {
        params.reasoning_format = common_reasoning_format_from_name(settings.reasoning_format);
        params.parse_tool_calls = !settings.tools.empty();
        params.is_continuation = settings.continues_final_message;
        if (!format.parser.empty()) params.parser.load(format.parser);
        if (params.is_continuation) shown = common_chat_parse("", true, params);
    }

    /// A call's name comes whole, once its arguments begin: until then it may be a part of it.
    void add_call(const common_chat_tool_call& call, std::size_t index, bool is_partial, MessagePart& part) {
        const bool is_new = index >= shown.tool_calls.size();
        if (is_new && is_partial && call.arguments.empty()) return;
        if (is_new) shown.tool_calls.push_back({call.name, "", call.id});
        std::string more = take_more(shown.tool_calls[index].arguments, call.arguments);
        if (!is_new && more.empty()) return;
        part.calls.push_back({.index = index,
                              .name = is_new ? call.name : "",
                              .id = is_new ? call.id : "",
                              .arguments = std::move(more)});
    }
};

AnswerReader::AnswerReader(const Prompt& prompt, const RequestSettings& settings) {
    if (!prompt.format) return;
    try {
        parser_ = std::make_unique<Parser>(*prompt.format, settings);
    } catch (const std::exception&) {  // llama.cpp cannot parse this template's answers
    }
}

AnswerReader::AnswerReader(AnswerReader&&) noexcept = default;
AnswerReader::~AnswerReader() = default;

MessagePart AnswerReader::read(const std::string& more) {
    if (!parser_) return {.content = more};
    text_ += more;
    return difference(true).value_or(MessagePart());
}

MessagePart AnswerReader::finish(const std::string& rest) {
    if (!parser_) return {.content = rest};
    text_ += rest;
    if (std::optional<MessagePart> part = difference(false)) return *std::move(part);
    // An answer that was cut need not follow its format: what of it does, or else its text.
    MessagePart part = difference(true).value_or(MessagePart());
    if (parser_->shown.empty()) part.content = parser_->shown.content = text_;
    return part;
}

/// What the text has beyond what was shown; none where it does not follow its format.
std::optional<MessagePart> AnswerReader::difference(bool is_partial) {
    try {
        const common_chat_msg now = common_chat_parse(text_, is_partial, parser_->params);
        common_chat_msg& shown = parser_->shown;
        MessagePart part{.content = take_more(shown.content, now.content),
                         .reasoning = take_more(shown.reasoning_content, now.reasoning_content)};
        for (std::size_t i = 0; i < now.tool_calls.size() && i <= shown.tool_calls.size(); ++i)
            parser_->add_call(now.tool_calls[i], i, is_partial && i + 1 == now.tool_calls.size(), part);
        return part;
    } catch (const std::exception&) {
        return std::nullopt;
    }
}

Answer parse_answer(const Prompt& prompt, const std::string& text, const RequestSettings& settings) {
    MessagePart whole = AnswerReader(prompt, settings).finish(text);
    Answer answer{.content = std::move(whole.content), .reasoning = std::move(whole.reasoning)};
    for (MessagePart::Call& call : whole.calls)
        answer.calls.push_back({std::move(call.name), std::move(call.arguments), std::move(call.id)});
    return answer;
}

}  // namespace headrace::llm
