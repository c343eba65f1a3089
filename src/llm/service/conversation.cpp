#include "llm/service/conversation.h"

#include <common/chat.h>
#include <common/json.h>

#include <algorithm>
#include <ctime>
#include <mutex>

#include "llm/checks/model_metadata.h"
#include "llm/service/call_grammar.h"

#ifdef __GLIBC__
/// localtime in the C library's place, whose result is one for all threads: llama.cpp, which is linked with
/// us, asks it for the date that templates are told. Others could wait for a long template otherwise. A name
/// of its own lets it be hidden, as <ctime> declares localtime's visible: who loads us keeps the C library's.
extern "C" [[gnu::visibility("hidden")]] std::tm* localtime_of_thread(const std::time_t* time) noexcept
    __asm__("localtime");
extern "C" std::tm* localtime_of_thread(const std::time_t* time) noexcept {
    thread_local std::tm result;
    return localtime_r(time, &result);
}
#endif

namespace headrace::llm {
namespace {

constexpr int kLeastAnswer = 32;  // tokens of the context that a conversation's prompt leaves free

/// Whether a text was put into a chat template by its sender.
bool has_control_tokens(const Model& model, const Tokens& tokens) {
    return std::any_of(tokens.begin(), tokens.end(), [&](llama_token token) {
        return llama_vocab_is_control(model.vocab(), token) && token != llama_vocab_bos(model.vocab());
    });
}

/// Images as marks between the texts.
void add_parts(const Message& message, common_chat_msg& entry) {
    std::vector<std::string> texts = message.parts;
    if (!message.images.empty() && texts.empty() && !message.content.empty()) {
        texts = {message.content};
        entry.content.clear();
    }
    auto image = message.images.begin();
    for (std::size_t i = 0; i <= texts.size(); ++i) {
        for (; image != message.images.end() && (image->part <= i || i == texts.size()); ++image)
            entry.content_parts.push_back({"media_marker", Projector::marker()});
        if (i < texts.size()) entry.content_parts.push_back({"text", texts[i]});
    }
}

common_chat_templates_inputs inputs_of(const Messages& messages, const RequestSettings& settings,
                                       bool use_jinja) {
    common_chat_templates_inputs inputs;
    for (const Message& message : messages) {
        common_chat_msg entry;
        entry.role = message.role;
        entry.content = message.content;
        entry.reasoning_content = message.reasoning;
        add_parts(message, entry);
        entry.tool_call_id = message.tool_call_id;
        entry.tool_name = message.tool_name;
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
    inputs.add_generation_prompt = settings.add_generation_prompt && !settings.continues_final_message;
    if (settings.continues_final_message) inputs.continue_final_message = COMMON_CHAT_CONTINUATION_AUTO;
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

/// Where a shorter conversation may begin, the first as it does: a question goes with its answer, a call with
/// its results.
std::vector<std::size_t> possible_starts(const Messages& messages) {
    const std::size_t first = begins_with_system(messages) ? 1 : 0;
    std::vector<std::size_t> all = {first};
    std::size_t question = first;
    for (std::size_t i = first + 1; i < messages.size(); ++i)
        if (messages[i].role == "user") all.push_back(question = i);
    for (std::size_t i = question + 1; i < messages.size(); ++i)
        if (!messages[i].tool_calls.empty()) all.push_back(i);
    return all;
}

/// beginning: one of those.
Prompt without_oldest(const Prompt& prompt, std::size_t beginning) {
    Prompt shorter = prompt;
    const std::size_t first = begins_with_system(prompt.messages) ? 1 : 0;
    shorter.messages.erase(shorter.messages.begin() + static_cast<std::ptrdiff_t>(first),
                           shorter.messages.begin() + static_cast<std::ptrdiff_t>(beginning));
    shorter.dropped = beginning - first;
    return shorter;
}

GrammarTrigger::Type type_of(common_grammar_trigger_type type) {
    switch (type) {
        case COMMON_GRAMMAR_TRIGGER_TYPE_TOKEN: return GrammarTrigger::Type::token;
        case COMMON_GRAMMAR_TRIGGER_TYPE_WORD: return GrammarTrigger::Type::word;
        case COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN: return GrammarTrigger::Type::pattern;
        case COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN_FULL: return GrammarTrigger::Type::pattern_full;
    }
    return GrammarTrigger::Type::word;
}

std::vector<GrammarTrigger> triggers_of(const common_chat_params& format) {
    std::vector<GrammarTrigger> triggers;
    for (const common_grammar_trigger& trigger : format.grammar_triggers)
        triggers.push_back({type_of(trigger.type), trigger.value, trigger.token});
    return triggers;
}

/// Gives the sampler the tags between which the template lets the model think, and what ends thoughts that
/// reach the budget.
void limit_thoughts(const Model& model, const common_chat_params& format, RequestSettings& settings) {
    if (settings.sampling.reasoning_budget_tokens < 0 || format.thinking_start_tag.empty() ||
        format.thinking_end_tags.empty())
        return;
    TemplateDemands& demands = settings.demands;
    demands.thinking_start = model.tokenize(format.thinking_start_tag, false, true);
    for (const std::string& tag : format.thinking_end_tags)
        demands.thinking_ends.push_back(model.tokenize(tag, false, true));
    demands.thinking_cut_off = model.tokenize(
        settings.sampling.reasoning_budget_message + format.thinking_end_tags.front(), false, true);
    demands.generation_prompt = format.generation_prompt;  // it may have begun to think
}

common_chat_params applied(const common_chat_templates* templates,
                           const common_chat_templates_inputs& inputs) {
#ifndef __GLIBC__  // whose own localtime has one result for all threads
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
#endif
    return common_chat_templates_apply(templates, inputs);
}

/// Gives the sampler the grammar of the tools' calls.
Status demand_calls(const common_chat_templates* templates, common_chat_templates_inputs inputs,
                    const common_chat_params& shown, RequestSettings& settings) {
    HR_ASSIGN(const CallTools tools, kept_tools(inputs.tools));
    inputs.tools = tools.tools;
    // The prompt shows the schemas as they were given.
    const common_chat_params params = tools.is_changed ? applied(templates, inputs) : shown;
    const bool is_forced = settings.tool_choice == "required";
    if (is_forced && settings.continues_final_message)
        return invalid(
                   "tool_choice forces a call, and an answer that was begun with a text is none; leave out "
                   "the last message, or set tool_choice to auto")
            .of_parameter("tool_choice");
    const bool answers_in_json = settings.tool_choice == "auto" && !settings.json_schema.empty();
    const CallRules rules{.is_forced = is_forced || answers_in_json,
                          .is_single = !settings.parallel_tool_calls,
                          .may_think = settings.enable_thinking,
                          .or_schema = answers_in_json ? settings.json_schema : ""};
    const bool mixes_thoughts = inputs.reasoning_format == COMMON_REASONING_FORMAT_NONE;
    std::string grammar;
    if (answers_in_json || (is_forced && mixes_thoughts)) {
        inputs.tool_choice = COMMON_CHAT_TOOL_CHOICE_REQUIRED;
        // Thoughts that are not told from the answer would be a text before the call.
        if (mixes_thoughts) inputs.reasoning_format = COMMON_REASONING_FORMAT_DEEPSEEK;
        const common_chat_params forcing = applied(templates, inputs);
        HR_ASSIGN(grammar, call_grammar(forcing, tools, rules));
    } else if (!params.grammar.empty()) {
        HR_ASSIGN(grammar, call_grammar(params, tools, rules));
    }
    if (is_forced && grammar.empty())
        return invalid(
                   "tool_choice forces a call, and the model's chat template has no form for calls; set it "
                   "to auto, or give the model a template that has one")
            .of_parameter("tool_choice");
    if (grammar.empty()) return success();
    // It begins with what the template has put into the prompt, which llama.cpp skips in this kind.
    settings.demands.grammar = std::move(grammar);
    settings.grammar_lazy = params.grammar_lazy && !answers_in_json;
    settings.sampling.grammar_triggers = triggers_of(params);
    settings.demands.generation_prompt = params.generation_prompt;
    return success();
}

/// The text of the messages in the model's template, ready for an answer; what the template wants of the
/// sampler goes into the settings.
Result<std::string> render_chat(const Model& model, Prompt& prompt, RequestSettings& settings) {
    try {
        common_chat_templates_ptr own;
        if (!settings.own_template.empty()) {
            if (const Status status = check_template(settings.own_template); !status.ok())
                return status.error().within("chat_template").of_parameter("chat_template");
            own = common_chat_templates_init(model.get(), settings.own_template);
        }
        const common_chat_templates* templates = own ? own.get() : model.templates();
        const common_chat_templates_inputs inputs = inputs_of(prompt.messages, settings, model.uses_jinja());
        common_chat_params params = applied(templates, inputs);
        settings.stopping.strings.insert(settings.stopping.strings.end(), params.additional_stops.begin(),
                                         params.additional_stops.end());
        settings.preserved_tokens.insert(settings.preserved_tokens.end(), params.preserved_tokens.begin(),
                                         params.preserved_tokens.end());
        if (!settings.tools.empty()) HR_TRY(demand_calls(templates, inputs, params, settings));
        limit_thoughts(model, params, settings);
        std::string text = params.prompt;
        prompt.format = std::make_shared<const common_chat_params>(std::move(params));
        return text;
    } catch (const std::exception& e) {
        if (!settings.own_template.empty())
            return invalid("chat_template: {}", e.what()).of_parameter("chat_template");
        if (!common_chat_templates_was_explicit(model.templates())) return fallback_chat(prompt.messages);
        return invalid("the model's chat template cannot take these messages: {}", e.what());
    }
}

std::vector<const Image*> images_of(const Messages& messages) {
    std::vector<const Image*> images;
    for (const Message& message : messages)
        for (const Image& image : message.images) images.push_back(&image);
    return images;
}

/// Those of the prompt's text, and of its messages' images in it.
Status read_tokens(const Model& model, Prompt& prompt) {
    const std::vector<const Image*> images = images_of(prompt.messages);
    if (images.empty()) {
        prompt.tokens = model.tokenize(prompt.text, true, true);
        return success();
    }
    HR_ASSIGN(ImagePrompt read, model.projector()->tokenize(prompt.text, images));
    prompt.tokens = std::move(read.tokens);
    prompt.images = std::move(read.pieces);
    return success();
}

/// Before they are written into a template.
Status check_images(const Model& model, const Messages& messages) {
    for (const Image* image : images_of(messages)) {
        if (!image->file || image->file->empty()) return invalid("{}: it is empty", image->name);
        if (!model.projector())
            return unsupported(
                       "image input is not supported: {} was loaded without mmproj, the file that reads "
                       "images",
                       model.description())
                .of_parameter(image->name);
    }
    return success();
}

Error too_many_bytes(std::string_view text, int context_size) {
    return failure(
        Code::prompt_too_long,
        "the prompt has {} bytes, which are more than {} tokens, and the context holds {} of prompt and "
        "answer together. Shorten it, or load the model with a larger n_ctx",
        text.size(), context_size, context_size);
}

}  // namespace

void warn_of_unused_by_template(const Model& model, const RequestSettings& request, Warnings& warnings) {
    if (request.tools.empty()) return;
    const auto abilities = common_chat_templates_get_caps(model.templates());
    const auto tools = abilities.find("supports_tools");
    if (tools != abilities.end() && !tools->second)
        warnings.push_back(
            {"tools", "'tools' has no effect: the model's chat template does not show them to it"});
}

Result<Prompt> make_prompt(const Model& model, const Messages& history, std::string_view text,
                           int context_size, RequestSettings& settings) {
    if (text.size() > model.most_bytes(static_cast<std::size_t>(context_size)))
        return too_many_bytes(text, context_size);
    if (settings.chat != "on") {
        Prompt prompt{.tokens = model.tokenize(text, true, true), .text = std::string(text)};
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
    HR_TRY(check_images(model, messages));
    const std::size_t most = model.most_bytes(static_cast<std::size_t>(context_size));
    const Prompt prompt{.chat = true, .messages = with_system(std::move(messages), settings)};
    const int room = context_size - std::min(kLeastAnswer, context_size / 4);
    const RequestSettings asked = settings;
    const std::vector<std::size_t> begins = possible_starts(prompt.messages);
    const auto written = [&](std::size_t beginning) -> Result<Prompt> {
        settings = asked;
        Prompt shorter = without_oldest(prompt, begins[beginning]);
        HR_ASSIGN(shorter.text, render_chat(model, shorter, settings));
        if (shorter.text.size() > most) return too_many_bytes(shorter.text, context_size);
        HR_TRY(read_tokens(model, shorter));
        return shorter;
    };
    const auto fits = [&](const Result<Prompt>& tried) {
        return tried.ok() && std::cmp_less_equal(tried.value().tokens.size(), room);
    };
    Result<Prompt> whole = written(0);
    std::size_t too_few = 0, enough = begins.size() - 1;
    const bool is_wrong = !whole.ok() && whole.error().code != Code::prompt_too_long;
    if (fits(whole) || is_wrong || enough == 0 || !asked.drops_oldest) return whole;
    // The fewest that have to go, found in few tries: a caller may send thousands of messages.
    while (enough - too_few > 1) {
        const std::size_t middle = too_few + (enough - too_few) / 2;
        (fits(written(middle)) ? enough : too_few) = middle;
    }
    Result<Prompt> shortest = written(enough);  // where it is too long, the engine says that
    const bool is_refused = !shortest.ok() && shortest.error().code != Code::prompt_too_long;
    return is_refused ? written(0) : shortest;
}

}  // namespace headrace::llm
