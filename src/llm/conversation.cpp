#include "llm/conversation.h"

#include <common/chat.h>
#include <common/json.h>

#include <algorithm>

namespace headrace::llm {
namespace {

constexpr int least_answer = 32;  // tokens of the context that a conversation's prompt leaves free

/// Whether a text was put into a chat template by its sender.
bool has_control_tokens(const Model& model, const Tokens& tokens) {
    return std::any_of(tokens.begin(), tokens.end(), [&](llama_token token) {
        return llama_vocab_is_control(model.vocab(), token) && token != llama_vocab_bos(model.vocab());
    });
}

common_chat_templates_inputs inputs_of(const Messages& messages, const RequestSettings& settings) {
    common_chat_templates_inputs inputs;
    for (const Message& message : messages) {
        common_chat_msg entry;
        entry.role = message.role;
        entry.content = message.content;
        inputs.messages.push_back(std::move(entry));
    }
    inputs.enable_thinking = settings.enable_thinking;
    inputs.chat_template_kwargs = settings.template_kwargs;
    inputs.reasoning_format = common_reasoning_format_from_name(settings.reasoning_format);
    return inputs;
}

/// For models whose template cannot take the messages: the form that most small models have seen.
std::string fallback_chat(const Messages& messages) {
    std::string text;
    for (const Message& message : messages) text += fmt::format("{}: {}\n", message.role, message.content);
    return text + "assistant:";
}

Messages with_system(const Messages& history, const RequestSettings& settings) {
    const bool has_system = !history.empty() && history.front().role == "system";
    Messages messages = history;
    if (!has_system && !settings.system_prompt.empty())
        messages.insert(messages.begin(), {"system", settings.system_prompt});
    return messages;
}

}  // namespace

Result<std::string> render_chat(const Model& model, const Messages& messages, RequestSettings& settings) {
    try {
        common_chat_params params =
            common_chat_templates_apply(model.templates(), inputs_of(messages, settings));
        for (std::string& stop : params.additional_stops)
            settings.stopping.strings.push_back(std::move(stop));
        for (std::string& text : params.preserved_tokens)
            settings.preserved_tokens.push_back(std::move(text));
        settings.sampling.generation_prompt = params.generation_prompt;
        return params.prompt;
    } catch (const std::exception& e) {
        if (!common_chat_templates_was_explicit(model.templates())) return fallback_chat(messages);
        return invalid("the model's chat template cannot take these messages: {}", e.what());
    }
}

Result<Prompt> make_prompt(const Model& model, const Messages& history, std::string_view text,
                           int context_size, RequestSettings& settings) {
    Prompt prompt;
    if (settings.chat != "on") {
        prompt.tokens = model.tokenize(text, true, true);
        if (settings.chat == "off" || has_control_tokens(model, prompt.tokens) ||
            !common_chat_templates_was_explicit(model.templates()))
            return prompt;
    }
    prompt.chat = true;
    prompt.messages = with_system(history, settings);
    prompt.messages.push_back({"user", std::string(text)});
    const int room = context_size - std::min(least_answer, context_size / 4);
    const RequestSettings asked = settings;
    for (;;) {
        settings = asked;
        HR_ASSIGN(const std::string rendered, render_chat(model, prompt.messages, settings));
        prompt.tokens = model.tokenize(rendered, true, true);
        if (std::cmp_less_equal(prompt.tokens.size(), room)) return prompt;
        const size_t first = prompt.messages.front().role == "system" ? 1 : 0;
        if (prompt.messages.size() - first < 3) return prompt;  // the engine says that it is too long
        // A question goes with its answer.
        prompt.messages.erase(prompt.messages.begin() + static_cast<std::ptrdiff_t>(first),
                              prompt.messages.begin() + static_cast<std::ptrdiff_t>(first) + 2);
        prompt.dropped += 2;
    }
}

}  // namespace headrace::llm
