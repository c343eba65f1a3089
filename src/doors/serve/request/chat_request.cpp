#include "doors/serve/request/chat_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/parameter_json.h"
#include "doors/serve/request/images.h"
#include "doors/serve/request/sampling_fields.h"

namespace headrace::serve {
namespace {

constexpr int kMostLogprobs = 20;

/// Fields of the body that this door or nobody reads; all others are the engine's.
const std::set<std::string_view> kChatFields = {"messages",
                                                "chat_template",
                                                "model",
                                                "stream",
                                                "stream_options",
                                                "n",
                                                "n_cmpl",
                                                "logprobs",
                                                "top_logprobs",
                                                "tools",
                                                "tool_choice",
                                                "functions",
                                                "function_call",
                                                "user",
                                                "metadata",
                                                "store",
                                                "modalities",
                                                "audio",
                                                "prediction",
                                                "service_tier",
                                                "id_slot",
                                                "verbose",
                                                "session",
                                                "session_id",
                                                "prompt_cache_key",
                                                "safety_identifier",
                                                "verbosity",
                                                "web_search_options",
                                                "add_generation_prompt",
                                                "continue_final_message",
                                                "sse_ping_interval",
                                                "previous_messages",
                                                "messages_format"};

std::string text_part(const Json& part, const std::string& place) {
    const Fields fields(part, place);
    const std::string type = fields.required_text("type");
    if (type == "text" || type == "input_text" || type == "output_text") return fields.required_text("text");
    if (type == "refusal") return fields.required_text("refusal");
    throw wrong_field(
        fields.name("type"),
        fmt::format("is '{:.40}'; texts and images (image_url) are read, and no audio or files", type));
}

ToolCall call_of(const Json& given, const std::string& place) {
    const Fields call(given, place);
    const Json* function = call.object("function");
    if (!function) call.wrong("function", "an object");
    const Fields fields(*function, call.name("function"));
    ToolCall read{
        .name = fields.required_text("name"), .arguments = "{}", .id = call.text("id").value_or("")};
    if (const Json* arguments = fields.any("arguments"))
        read.arguments = arguments->is_string() ? arguments->get<std::string>() : text_of(*arguments);
    return read;
}

Message message_of(const Json& given, const std::string& place) {
    const Fields fields(given, place);
    Message message{.role = fields.required_text("role")};
    if (message.role == "developer") message.role = "system";
    if (message.role == "function") message.role = "tool";
    constexpr std::array<std::string_view, 4> kRoles = {"system", "user", "assistant", "tool"};
    if (std::ranges::find(kRoles, message.role) == kRoles.end())
        throw wrong_field(
            fields.name("role"),
            fmt::format("is '{:.40}'; it must be system, developer, user, assistant or tool", message.role));
    read_content(fields, "content", message);
    for (std::string_view name : {"reasoning_content", "reasoning"})
        if (message.reasoning.empty()) message.reasoning = fields.text(name).value_or("");
    if (const Json* calls = fields.list("tool_calls"))
        for (std::size_t i = 0; i < calls->size(); ++i)
            message.tool_calls.push_back(
                call_of((*calls)[i], fmt::format("{}[{}]", fields.name("tool_calls"), i)));
    if (const Json* call = fields.object("function_call")) {
        const Json wrapped = {{"function", *call}};
        message.tool_calls.push_back(call_of(wrapped, place));
    }
    message.tool_call_id = fields.text("tool_call_id").value_or("");
    const std::string name = fields.text("name").value_or("");
    if (message.role == "tool") message.tool_name = name;
    const bool is_empty = !fields.any("content") && message.tool_calls.empty() && message.reasoning.empty();
    if (is_empty) throw wrong_field(fields.name("content"), "is missing");
    return message;
}

/// An assistant's message at the end is gone on with, as llama-server does.
void read_continuation(const Fields& body, ChatBody& chat) {
    const std::vector<Message>& messages = chat.request.messages;
    std::optional<bool> continues;
    if (const Json* given = body.any("continue_final_message"))
        continues = given->is_boolean() ? given->get<bool>() : true;  // or which part of it
    const std::optional<bool> begins = body.flag("add_generation_prompt");
    if (continues.value_or(false) && begins.value_or(false))
        throw wrong_field(
            "continue_final_message",
            "goes on with the last message, and add_generation_prompt begins another: set only one");
    const bool is_answered = !messages.empty() && messages.back().role == "assistant";
    if (is_answered && messages.size() > 1 && messages[messages.size() - 2].role == "assistant")
        throw wrong_field("messages", "ends with two messages of the assistant; join them");
    if (continues.value_or(ends_with_answer(messages) && begins.value_or(true))) {
        if (!is_answered)
            throw wrong_field("continue_final_message", "needs a message of the assistant at the end");
        chat.request.parameters.set("continue_final_message", true);
    } else if (begins) {
        chat.request.parameters.set("add_generation_prompt", *begins);
    }
}

/// Sets `n_probs` from `logprobs` and `top_logprobs` as chats have them; llama-server's own name asks, too.
void read_logprobs(const Fields& body, ChatBody& chat) {
    const auto top = body.integer("top_logprobs", 0, kMostLogprobs);
    const bool wanted = body.flag("logprobs").value_or(false);
    if (top.value_or(0) > 0 && !wanted) throw wrong_field("top_logprobs", "needs 'logprobs': true");
    const Json* own = body.any("n_probs");
    const bool counts =
        own && own->is_number_integer() && *own > 0;  // anything else is the engine's to judge
    if (!wanted && !counts) return;
    chat.options.shows_probabilities = true;
    chat.options.likeliest = wanted ? static_cast<std::size_t>(top.value_or(0)) : own->get<std::size_t>();
    if (wanted) chat.request.parameters.set("n_probs", std::max<std::int64_t>(top.value_or(0), 1));
}

/// Refuses fields that would change the answer and that this server lacks.
void refuse_other_answers(const Fields& body) {
    if (const Json* modalities = body.list("modalities"))
        for (const Json& modality : *modalities)
            if (modality != "text")
                throw wrong_field("modalities", fmt::format("asks for {:.40}; this model writes texts only",
                                                            text_of(modality)));
    for (std::string_view name : {"audio", "web_search_options"})
        if (body.any(name))
            throw wrong_field(std::string(name), "is not offered: this model writes texts, of what it knows");
    for (std::string_view name : {"system_prompt", "system_message"})
        if (body.any(name))
            throw wrong_field(std::string(name),
                              "is not taken in a chat: send a message of the role system as the first one");
    check_verbosity(body);
}

}  // namespace

void check_verbosity(const Fields& fields) { check_word(fields, "verbosity", {"low", "medium", "high"}); }

void read_content(const Fields& fields, std::string_view key, Message& message) {
    const Json* content = fields.any(key);
    if (!content) return;
    if (content->is_string()) {
        message.content = content->get<std::string>();
        return;
    }
    if (!content->is_array()) fields.wrong(key, "a text or a list of parts");
    for (std::size_t i = 0; i < content->size(); ++i) {
        const std::string place = fmt::format("{}[{}]", fields.name(key), i);
        const Fields part((*content)[i], place);
        const std::string type = part.required_text("type");
        if (type == "image_url" || type == "input_image") {
            message.images.push_back(image_of_part(part));
            message.images.back().part = message.parts.size();
        } else {
            message.parts.push_back(text_part((*content)[i], place));
        }
    }
}

std::vector<Message> messages_of(const Json& list, const std::string& place) {
    if (!list.is_array()) throw wrong_field(place, fmt::format("is {}; it must be a list", kind_of(list)));
    if (list.empty()) throw wrong_field(place, "is empty; it must have at least one message");
    std::vector<Message> messages;
    for (std::size_t i = 0; i < list.size(); ++i)
        messages.push_back(message_of(list[i], fmt::format("{}[{}]", place, i)));
    return messages;
}

Parameters engine_parameters(const Json& body, const std::set<std::string_view>& known) {
    if (const auto stop = body.find("stop"); stop != body.end() && !stop->is_null()) {
        const bool is_list =
            stop->is_array() && std::ranges::all_of(*stop, [](const Json& text) { return text.is_string(); });
        if (!stop->is_string() && !is_list)
            throw wrong_field("stop",
                              fmt::format("is {}; it must be a text or a list of texts", kind_of(*stop)));
    }
    constexpr std::size_t kMostFields = 256;
    if (body.size() > kMostFields)
        throw wrong_field(
            "", fmt::format("the body has {} fields; at most {} are taken", body.size(), kMostFields));
    Parameters rest;
    for (const auto& [name, value] : body.items())
        if (!known.contains(name) && !value.is_null()) rest.set(name, parameter_of(value));
    return rest;
}

namespace {

std::string first_name_of(const ParameterValue& section) {
    const auto& entries = std::get<Parameters>(section).entries();
    return entries.empty() ? "NAME" : entries.begin()->first;
}

}  // namespace

void check_values(const Parameters& parameters) {
    for (const auto& [name, value] : parameters.entries()) {
        if (!std::holds_alternative<Parameters>(value)) continue;
        const ParameterKind kind = kind_of_parameter(name);
        if (kind == ParameterKind::value) throw wrong_field(name, "is an object; it must be a value");
        if (kind == ParameterKind::section)
            throw wrong_field(name, fmt::format("is an object; write what it has by dotted names, as '{}.{}'",
                                                name, first_name_of(value)));
    }
}

bool includes_usage(const Fields& body) {
    const Json* options = body.object("stream_options");
    return options && Fields(*options, "stream_options").flag("include_usage").value_or(false);
}

int choices_in(const Fields& body, std::initializer_list<std::string_view> names) {
    std::int64_t count = 1;
    for (const std::string_view name : names) count = body.integer(name, 1, kMostChoices).value_or(count);
    return static_cast<int>(count);
}

void check_limits(const Fields& body) {
    for (std::string_view name : {"max_tokens", "max_completion_tokens", "n_predict"})
        static_cast<void>(body.integer(name, -1, INT32_MAX));  // none of several may be wrong
}

int wanted_slot(const Fields& body) {
    return static_cast<int>(body.integer("id_slot", -1, INT32_MAX).value_or(-1));
}

void read_session(const Fields& body, Parameters& parameters) {
    for (const std::string_view name : {"session_id", "session"}) {  // both are checked, the second counts
        const auto session = body.text(name);
        if (!session) continue;
        if (session->size() > kLongestSessionName)
            throw wrong_field(body.name(name), fmt::format("is a name of {} bytes; at most {} are allowed",
                                                           session->size(), kLongestSessionName));
        parameters.set("session_id", *session);
    }
}

std::string session_field(const Fields& body) { return body.any("session") ? "session" : "session_id"; }

bool ends_with_answer(const std::vector<Message>& messages) {
    return !messages.empty() && messages.back().role == "assistant" && messages.back().tool_calls.empty();
}

ChatBody chat_body(const Json& given, const ModelInfo& model, ChatRules rules) {
    const Fields body(given);
    const bool is_openai = rules != ChatRules::llama_server;
    const std::size_t longest_name = is_openai ? kLongestToolName : kAnyToolName;
    if (is_openai) check_openai_fields(body);
    ChatBody chat;
    chat.options.names["session_id"] = session_field(body);
    chat.request.messages = messages_of(body.required("messages"), "messages");
    const bool knows_all = !body.any("session") && !body.any("session_id");
    if (rules == ChatRules::openai && knows_all) check_tool_messages(body.required("messages"));
    check_images(chat.request.messages, model);
    chat.request.parameters = engine_parameters(given, kChatFields);
    bound_seed(chat.request.parameters);
    chat.request.parameters.set("drop_oldest", false);
    chat.request.chat_template = body.text("chat_template").value_or("");
    chat.options.uses_functions = read_functions(body, longest_name, chat.request.parameters);
    if (chat.options.uses_functions) chat.options.names["tools"] = "functions";
    if (!chat.options.uses_functions) read_tools(body, longest_name, chat.request.parameters);
    check_can_call(chat.request.parameters, model);
    if (chat.request.parameters.find("tools") && body.any("grammar"))
        throw wrong_field("grammar", "cannot be given with tools, whose calls have a grammar of their own");
    if (!given.contains("parallel_tool_calls") && !chat.options.uses_functions) {
        const auto able = model.template_abilities.find("supports_parallel_tool_calls");
        chat.request.parameters.set("parallel_tool_calls",
                                    able != model.template_abilities.end() && able->second);
    }
    refuse_other_answers(body);
    read_continuation(body, chat);
    read_logprobs(body, chat);
    chat.options.streams = body.flag("stream").value_or(false);
    chat.options.includes_usage = includes_usage(body);
    chat.options.choices = choices_in(body, {"n", "n_cmpl"});
    chat.options.wanted_slot = wanted_slot(body);
    check_limits(body);
    if (const Json* format = body.any("response_format"); format && !body.any("json_schema"))
        chat.options.names["json_schema"] = format->is_object() && format->contains("json_schema")
                                                ? "response_format.json_schema.schema"
                                                : "response_format.schema";
    if (body.any("max_completion_tokens")) chat.request.parameters.erase("max_tokens");  // the older name
    chat.options.shows_prompt = body.flag("verbose").value_or(false);
    read_session(body, chat.request.parameters);
    return chat;
}

}  // namespace headrace::serve
