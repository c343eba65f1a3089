#include "doors/serve/api/response_request.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "doors/serve/request/fields.h"
#include "doors/serve/request/sampling_fields.h"

namespace headrace::serve {
namespace {

const std::set<std::string_view> kResponseFields = {"model",
                                                    "input",
                                                    "instructions",
                                                    "stream",
                                                    "stream_options",
                                                    "tools",
                                                    "tool_choice",
                                                    "text",
                                                    "reasoning",
                                                    "store",
                                                    "metadata",
                                                    "include",
                                                    "background",
                                                    "truncation",
                                                    "previous_response_id",
                                                    "conversation",
                                                    "max_output_tokens",
                                                    "user",
                                                    "service_tier",
                                                    "prompt",
                                                    "prompt_cache_key",
                                                    "safety_identifier",
                                                    "max_tool_calls",
                                                    "top_logprobs",
                                                    "session",
                                                    "session_id",
                                                    "messages",
                                                    "previous_messages",
                                                    "verbose",
                                                    "context_management",
                                                    "prompt_cache_retention"};

constexpr std::string_view kLogprobs = "message.output_text.logprobs";

/// A message of the assistant joins thoughts that it came from.
void add_message(const Fields& item, Json& messages) {
    const std::string role = item.required_text("role");
    const bool joins = role == "assistant" && !messages.empty() && messages.back()["role"] == role &&
                       messages.back()["content"] == "" && !messages.back().contains("tool_calls");
    if (joins)
        messages.back()["content"] = item.required("content");
    else
        messages.push_back({{"role", role}, {"content", item.required("content")}});
}

/// Calls and their outputs, by their ids.
class CallItems {
public:
    void call(const Fields& item) { waiting_.emplace(item.required_text("call_id"), item.name("call_id")); }
    void output(const Fields& item) {
        const std::string id = item.required_text("call_id");
        if (!waiting_.contains(id) && !answered_.contains(id))
            throw wrong_field(item.name("call_id"),
                              fmt::format("is '{:.60}', and no function_call before it has that", id));
        waiting_.erase(id);
        answered_.insert(id);
    }
    /// At the input's end.
    void check() const {
        if (!waiting_.empty())
            throw wrong_field(
                waiting_.begin()->second,
                fmt::format("is '{:.60}', and no function_call_output has that", waiting_.begin()->first));
    }

private:
    std::map<std::string, std::string> waiting_;  // ids, and where they are
    std::set<std::string> answered_;
};

/// An item of `input` as a message in the shape of chats. names: of what the message has elsewhere.
void add_item(const Json& given, const std::string& place, Json& messages, FieldNames& names) {
    const Fields item(given, place);
    const std::string type = item.text("type").value_or("message");
    if (type == "message") {
        add_message(item, messages);
    } else if (type == "function_call") {
        const Json call = {
            {"id", item.required_text("call_id")},
            {"type", "function"},
            {"function",
             {{"name", item.required_text("name")}, {"arguments", item.required_text("arguments")}}}};
        const bool joins = !messages.empty() && messages.back()["role"] == "assistant";
        if (!joins) messages.push_back({{"role", "assistant"}, {"content", ""}});
        Json& calls = messages.back()["tool_calls"];
        names[fmt::format("messages[{}].tool_calls[{}].function.arguments", messages.size() - 1,
                          calls.size())] = item.name("arguments");
        calls.push_back(call);
    } else if (type == "function_call_output") {
        messages.push_back({{"role", "tool"},
                            {"tool_call_id", item.required_text("call_id")},
                            {"content", item.required("output")}});
    } else if (type == "reasoning") {
        std::string thoughts;
        if (const Json* content = item.list("content"))
            for (const Json& part : *content)
                if (part.is_object())
                    thoughts += Fields(part, item.name("content")).text("text").value_or("");
        if (!thoughts.empty())
            messages.push_back({{"role", "assistant"}, {"content", ""}, {"reasoning_content", thoughts}});
    } else {
        throw wrong_field(item.name("type"), fmt::format("is '{:.40}', which is not taken here", type));
    }
}

/// Refuses fields that would change the answer and that this server lacks.
void refuse_what_responses_lack(const Fields& body) {
    constexpr std::pair<std::string_view, std::string_view> kRefused[] = {
        {"previous_response_id",
         "is not taken: this server keeps no responses; send the conversation, or name a 'session'"},
        {"conversation",
         "is not taken: this server keeps no conversations of that kind; send the messages, or name a "
         "'session'"},
        {"prompt",
         "names a prompt of OpenAI's, and this server keeps none; send 'instructions' and 'input'"}};
    for (const auto& [name, why] : kRefused)
        if (body.any(name)) throw wrong_field(std::string(name), std::string(why));
    if (body.flag("background").value_or(false))
        throw wrong_field("background", "is true; answers are given to the request that asks for them only");
    static_cast<void>(body.flag("store"));  // nothing is stored, and the answer says so
    if (const Json* edits = body.list("context_management"); edits && !edits->empty())
        throw wrong_field("context_management",
                          "is not offered; 'truncation': 'auto' leaves out the oldest messages");
    const std::string truncation = body.text("truncation").value_or("disabled");
    if (truncation != "auto" && truncation != "disabled")
        throw wrong_field("truncation", fmt::format("is '{:.40}'; it must be auto or disabled", truncation));
}

/// What `include` wants besides. Thoughts are whole in their items, so that encrypted ones add nothing.
void read_includes(const Fields& body, Json& chat) {
    const auto top = body.integer("top_logprobs", 0, 20);
    const Json* includes = body.list("include");
    if (!includes) return;
    for (std::size_t i = 0; i < includes->size(); ++i) {
        const Json& wanted = (*includes)[i];
        if (wanted == kLogprobs) {
            chat["logprobs"] = true;
            chat["top_logprobs"] = top.value_or(0);
        } else if (wanted != "reasoning.encrypted_content") {
            throw wrong_field(fmt::format("include[{}]", i),
                              fmt::format("is {:.60}, which is not to be had here: {} and "
                                          "reasoning.encrypted_content are",
                                          text_of(wanted), kLogprobs));
        }
    }
}

void read_items(const Json& input, bool knows_all, Json& messages, FieldNames& names) {
    CallItems calls;
    for (std::size_t i = 0; i < input.size(); ++i) {
        const std::string place = fmt::format("input[{}]", i);
        const std::size_t before = messages.size();
        add_item(input[i], place, messages, names);
        if (messages.size() > before) names[fmt::format("messages[{}]", before)] = place;
        const Fields item(input[i], place);
        const std::string type = item.text("type").value_or("");
        if (type == "function_call") calls.call(item);
        if (type == "function_call_output" && knows_all) calls.output(item);
    }
    if (knows_all) calls.check();
}

void read_messages(const Fields& body, Json& messages, FieldNames& names) {
    if (const auto instructions = body.text("instructions"))
        messages.push_back({{"role", "system"}, {"content", *instructions}});
    const Json& input = body.required("input");
    if (input.is_string())
        messages.push_back({{"role", "user"}, {"content", input}});
    else if (input.is_array())
        read_items(input, !body.any("session") && !body.any("session_id"), messages, names);
    else
        body.wrong("input", "a text or a list of items");
    if (messages.empty()) throw wrong_field("input", "is empty");
}

void read_response_tools(const Fields& body, Json& chat) {
    const Json* tools = body.list("tools");
    for (std::size_t i = 0; tools && i < tools->size(); ++i) {
        const Fields tool((*tools)[i], fmt::format("tools[{}]", i));
        if (tool.required_text("type") != "function")
            throw wrong_field(tool.name("type"), "must be function: this server runs no tools itself");
        Json function = {{"name", tool_name(tool, kLongestToolName)}};
        for (std::string_view key : {"description", "parameters", "strict"})
            if (const Json* value = tool.any(key)) function[std::string(key)] = *value;
        chat["tools"].push_back({{"type", "function"}, {"function", std::move(function)}});
    }
    const Json* choice = body.any("tool_choice");
    const bool says_nothing = choice && !chat.contains("tools") && (*choice == "auto" || *choice == "none");
    if (choice && !says_nothing) chat["tool_choice"] = *choice;
}

void read_text_format(const Fields& body, Json& chat) {
    const Json* given = body.object("text");
    if (!given) return;
    const Fields text(*given, "text");
    check_verbosity(text);
    const Json* format = text.object("format");
    if (!format) return;
    const Fields fields(*format, "text.format");
    const std::string type = fields.required_text("type");
    if (type != "text" && type != "json_object" && type != "json_schema")
        throw wrong_field(fields.name("type"),
                          fmt::format("is '{:.40}'; it must be text, json_object or json_schema", type));
    chat["response_format"] = {{"type", type}};
    if (type != "json_schema") return;
    const Json* schema = fields.object("schema");
    if (!schema) throw wrong_field(fields.name("schema"), "is missing");
    Json& holder = chat["response_format"]["json_schema"] = {{"schema", *schema}};
    if (const Json* strict = fields.any("strict")) holder["strict"] = *strict;
}

FieldNames names_of_response(const Fields& body) {
    return {{"messages", "input"},
            {"json_schema", "text.format.schema"},
            {"max_tokens", "max_output_tokens"},
            {"reasoning_effort", "reasoning.effort"},
            {"session_id", session_field(body)}};
}

}  // namespace

ResponseChat chat_of_response(const Json& given) {
    const Fields body(given);
    FieldNames names = names_of_response(body);
    check_openai_fields(body);
    static_cast<void>(body.object("stream_options"));
    refuse_what_responses_lack(body);
    Json chat = Json::object();
    for (const auto& [name, value] : given.items())
        if (!kResponseFields.contains(name)) chat[name] = value;
    for (std::string_view name : {"model", "stream", "session", "session_id"})
        if (const Json* value = body.any(name)) chat[std::string(name)] = *value;
    chat["messages"] = Json::array();
    read_messages(body, chat["messages"], names);
    chat["add_generation_prompt"] = true;
    chat["continue_final_message"] = false;
    if (const auto most = body.integer("max_output_tokens", 1, INT32_MAX)) chat["max_tokens"] = *most;
    if (const Json* reasoning = body.object("reasoning"))
        if (const auto effort = Fields(*reasoning, "reasoning").text("effort"))
            chat["reasoning_effort"] = *effort;
    read_response_tools(body, chat);
    read_text_format(body, chat);
    read_includes(body, chat);
    return {std::move(chat), std::move(names)};
}

bool drops_oldest(const Json& given) { return Fields(given).text("truncation") == "auto"; }

}  // namespace headrace::serve
