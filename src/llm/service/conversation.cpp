#include "llm/service/conversation.h"

#include <common/chat.h>
#include <common/json.h>

#include <algorithm>
#include <mutex>

namespace headrace::llm {
namespace {

constexpr int least_answer = 32;  // tokens of the context that a conversation's prompt leaves free

/// Whether a text was put into a chat template by its sender.
bool has_control_tokens(const Model& model, const Tokens& tokens) {
    return std::any_of(tokens.begin(), tokens.end(), [&](llama_token token) {
        return llama_vocab_is_control(model.vocab(), token) && token != llama_vocab_bos(model.vocab());
    });
}

common_chat_templates_inputs inputs_of(const Messages& messages, const RequestSettings& settings,
                                       bool use_jinja) {
    common_chat_templates_inputs inputs;
    for (const Message& message : messages) {
        common_chat_msg entry;
        entry.role = message.role;
        entry.content = message.content;
        entry.reasoning_content = message.reasoning;
        entry.tool_call_id = message.tool_call_id;
        for (const ToolCall& call : message.tool_calls)
            entry.tool_calls.push_back({call.name, call.arguments, call.id});
        inputs.messages.push_back(std::move(entry));
    }
    if (!settings.tools.empty()) {
        inputs.tools = common_chat_tools_parse_oaicompat(common_json::parse(settings.tools));
        inputs.tool_choice = common_chat_tool_choice_parse_oaicompat(settings.tool_choice);
        inputs.parallel_tool_calls = settings.parallel_tool_calls;
    }
    inputs.use_jinja = use_jinja;
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

bool begins_with_system(const Messages& messages) {
    return !messages.empty() && messages.front().role == "system";
}

Messages with_system(Messages messages, const RequestSettings& settings) {
    if (!begins_with_system(messages) && !settings.system_prompt.empty())
        messages.insert(messages.begin(), {"system", settings.system_prompt});
    return messages;
}

/// A question goes with its answer.
Prompt without_oldest(const Prompt& prompt, size_t pairs) {
    Prompt shorter = prompt;
    const auto first = shorter.messages.begin() + begins_with_system(prompt.messages);
    shorter.messages.erase(first, first + static_cast<std::ptrdiff_t>(2 * pairs));
    shorter.dropped = 2 * pairs;
    return shorter;
}

/// Gives the sampler the tags between which the template lets the model think, and what ends thoughts that
/// reach the budget.
void limit_thoughts(const Model& model, const common_chat_params& format, common_params_sampling& sampling) {
    if (sampling.reasoning_budget_tokens < 0 || format.thinking_start_tag.empty() ||
        format.thinking_end_tags.empty())
        return;
    sampling.reasoning_budget_start = model.tokenize(format.thinking_start_tag, false, true);
    for (const std::string& tag : format.thinking_end_tags)
        sampling.reasoning_budget_end.push_back(model.tokenize(tag, false, true));
    sampling.reasoning_budget_forced =
        model.tokenize(sampling.reasoning_budget_message + format.thinking_end_tags.front(), false, true);
    sampling.generation_prompt = format.generation_prompt;  // it may have begun to think
}

/// The text of the messages in the model's template, ready for an answer; what the template wants of the
/// sampler goes into the settings.
Result<std::string> render_chat(const Model& model, Prompt& prompt, RequestSettings& settings) {
    // Templates are told the date, which llama.cpp takes from std::localtime: one result for all threads.
    static std::mutex mutex;
    try {
        common_chat_params params = [&] {
            const std::lock_guard lock(mutex);
            return common_chat_templates_apply(model.templates(),
                                               inputs_of(prompt.messages, settings, model.uses_jinja()));
        }();
        settings.stopping.strings.insert(settings.stopping.strings.end(), params.additional_stops.begin(),
                                         params.additional_stops.end());
        settings.preserved_tokens.insert(settings.preserved_tokens.end(), params.preserved_tokens.begin(),
                                         params.preserved_tokens.end());
        if (!settings.tools.empty() && !params.grammar.empty()) {
            // It begins with what the template has put into the prompt, which llama.cpp skips in this kind.
            settings.sampling.grammar = {COMMON_GRAMMAR_TYPE_TOOL_CALLS, params.grammar};
            settings.grammar_lazy = params.grammar_lazy;
            settings.sampling.grammar_triggers = params.grammar_triggers;
            settings.sampling.generation_prompt = params.generation_prompt;
        }
        limit_thoughts(model, params, settings.sampling);
        std::string text = params.prompt;
        prompt.format = std::make_shared<const common_chat_params>(std::move(params));
        return text;
    } catch (const std::exception& e) {
        if (!common_chat_templates_was_explicit(model.templates())) return fallback_chat(prompt.messages);
        return invalid("the model's chat template cannot take these messages: {}", e.what());
    }
}

Error too_many_bytes(std::string_view text, int context_size) {
    return failure(
        Code::prompt_too_long,
        "the prompt has {} bytes, which are more than {} tokens, and the context holds {} of prompt and "
        "answer together. Shorten it, or load the model with a larger n_ctx",
        text.size(), context_size, context_size);
}

}  // namespace

void note_unused_by_template(const Model& model, const RequestSettings& request, Notes& notes) {
    if (request.tools.empty()) return;
    const auto abilities = common_chat_templates_get_caps(model.templates());
    const auto tools = abilities.find("supports_tools");
    if (tools != abilities.end() && !tools->second)
        notes.push_back(
            {"tools", "'tools' has no effect: the model's chat template does not show them to it"});
}

Answer parse_answer(const Prompt& prompt, const std::string& text, const RequestSettings& settings) {
    if (!prompt.format) return {.content = text};
    try {
        common_chat_parser_params params(*prompt.format);
        params.reasoning_format = common_reasoning_format_from_name(settings.reasoning_format);
        params.parse_tool_calls = !settings.tools.empty();
        if (!prompt.format->parser.empty()) params.parser.load(prompt.format->parser);
        common_chat_msg message = common_chat_parse(text, false, params);
        Answer answer{.content = std::move(message.content),
                      .reasoning = std::move(message.reasoning_content)};
        for (common_chat_tool_call& call : message.tool_calls)
            answer.calls.push_back({std::move(call.name), std::move(call.arguments), std::move(call.id)});
        return answer;
    } catch (const std::exception&) {
        return {.content = text};  // an answer that was cut need not follow its format
    }
}

Result<Prompt> make_prompt(const Model& model, const Messages& history, std::string_view text,
                           int context_size, RequestSettings& settings) {
    if (text.size() > model.most_bytes(static_cast<size_t>(context_size)))
        return too_many_bytes(text, context_size);
    if (settings.chat != "on") {
        Prompt prompt{.tokens = model.tokenize(text, true, true)};
        if (settings.chat == "off" || has_control_tokens(model, prompt.tokens) ||
            !common_chat_templates_was_explicit(model.templates()))
            return prompt;
    }
    Messages messages = history;
    messages.push_back({"user", std::string(text)});
    return make_prompt(model, std::move(messages), context_size, settings);
}

Result<Prompt> make_prompt(const Model& model, Messages messages, int context_size,
                           RequestSettings& settings) {
    const size_t most = model.most_bytes(static_cast<size_t>(context_size));
    const Prompt prompt{.chat = true, .messages = with_system(std::move(messages), settings)};
    const int room = context_size - std::min(least_answer, context_size / 4);
    const RequestSettings asked = settings;
    const auto written = [&](size_t pairs) -> Result<Prompt> {
        settings = asked;
        Prompt shorter = without_oldest(prompt, pairs);
        HR_ASSIGN(const std::string rendered, render_chat(model, shorter, settings));
        if (rendered.size() > most) return too_many_bytes(rendered, context_size);
        shorter.tokens = model.tokenize(rendered, true, true);
        return shorter;
    };
    const auto fits = [&](const Result<Prompt>& tried) {
        return tried.ok() && std::cmp_less_equal(tried.value().tokens.size(), room);
    };
    Result<Prompt> whole = written(0);
    size_t too_few = 0, enough = (prompt.messages.size() - begins_with_system(prompt.messages) - 1) / 2;
    const bool is_wrong = !whole.ok() && whole.error().code != Code::prompt_too_long;
    if (fits(whole) || is_wrong || enough == 0) return whole;
    // The fewest that have to go, found in few tries: a guest may send thousands of messages.
    while (enough - too_few > 1) {
        const size_t middle = too_few + (enough - too_few) / 2;
        (fits(written(middle)) ? enough : too_few) = middle;
    }
    return written(enough);  // where that is not enough, the engine says that it is too long
}

}  // namespace headrace::llm
