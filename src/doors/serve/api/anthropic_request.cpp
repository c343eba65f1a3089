#include "doors/serve/api/anthropic_request.h"

#include <fmt/format.h>

#include <set>

#include "base/parameter_json.h"
#include "doors/serve/request/chat_request.h"
#include "doors/serve/request/fields.h"
#include "doors/serve/request/images.h"

namespace headrace::serve {
namespace {

constexpr int kMostTokens = 1 << 24;
const std::set<std::string_view> kAnthropicFields = {"model",
                                                     "messages",
                                                     "system",
                                                     "max_tokens",
                                                     "stop_sequences",
                                                     "stream",
                                                     "metadata",
                                                     "tools",
                                                     "tool_choice",
                                                     "thinking",
                                                     "container",
                                                     "mcp_servers",
                                                     "context_management",
                                                     "session",
                                                     "session_id",
                                                     "service_tier",
                                                     "betas",
                                                     "output_config",
                                                     "output_format",
                                                     "previous_messages",
                                                     "verbose",
                                                     "inference_geo",
                                                     "cache_control"};

void add_image(const Fields& block, Message& message) {
    message.images.push_back(image_of_block(block));
    message.images.back().part = message.parts.size();
}

/// A content that is a text or a list of blocks.
void read_texts(const Json& content, const std::string& place, Message& message) {
    if (content.is_string()) {
        message.content = content.get<std::string>();
        return;
    }
    if (!content.is_array())
        throw wrong_field(place,
                          fmt::format("is {}; it must be a text or a list of blocks", kind_of(content)));
    for (std::size_t i = 0; i < content.size(); ++i) {
        const Fields block(content[i], fmt::format("{}.{}", place, i));
        const std::string type = block.required_text("type");
        if (type == "text")
            message.parts.push_back(block.required_text("text"));
        else if (type == "image" && message.role != "system")
            add_image(block, message);
        else
            throw wrong_field(
                block.name("type"),
                fmt::format("is '{:.40}'; texts and images of messages are read, and no documents", type));
    }
    if (message.parts.size() == 1 && message.images.empty())
        message.content = std::exchange(message.parts, {}).front();
}

/// A message's blocks: texts, thoughts, uses of tools and their results, of which each is a message here.
/// calls: that results may be of; null where they are not known.
void add_blocks(const Json& content, const std::string& role, const std::string& place,
                const std::set<std::string>* calls, std::vector<Message>& messages) {
    Message message{.role = role};
    for (std::size_t i = 0; i < content.size(); ++i) {
        const Fields block(content[i], fmt::format("{}.{}", place, i));
        const std::string type = block.required_text("type");
        if (type == "text") {
            message.parts.push_back(block.required_text("text"));
        } else if (type == "thinking") {
            message.reasoning += block.text("thinking").value_or("");
        } else if (type == "redacted_thinking") {
            continue;
        } else if (type == "tool_use" && role == "assistant") {
            message.tool_calls.push_back({.name = block.required_text("name"),
                                          .arguments = text_of(block.required("input")),
                                          .id = block.required_text("id")});
        } else if (type == "tool_result" && role == "user") {
            Message result{.role = "tool", .tool_call_id = block.required_text("tool_use_id")};
            if (calls && !calls->contains(result.tool_call_id))
                throw wrong_field(
                    block.name("tool_use_id"),
                    fmt::format("is '{:.60}', and the previous message has no tool_use block of "
                                "that id",
                                result.tool_call_id));
            if (const Json* inner = block.any("content")) read_texts(*inner, block.name("content"), result);
            messages.push_back(std::move(result));
        } else if (type == "image" && role == "user") {
            add_image(block, message);
        } else {
            throw wrong_field(
                block.name("type"),
                fmt::format("is '{:.40}', which a message of the {} cannot have here", type, role));
        }
    }
    if (message.parts.size() == 1 && message.images.empty())
        message.content = std::exchange(message.parts, {}).front();
    const bool is_empty = message.content.empty() && message.parts.empty() && message.images.empty() &&
                          message.tool_calls.empty() && message.reasoning.empty();
    if (!is_empty || content.empty()) messages.push_back(std::move(message));
}

/// Which uses of tools a message's results may be of: those in the assistant's messages directly before it.
class RecentCalls {
public:
    /// A message whose blocks have been read.
    void add(const std::string& role, const Json& content) {
        if (role == "user") {
            is_answered_ = true;
            return;
        }
        if (std::exchange(is_answered_, false)) ids_.clear();
        if (!content.is_array()) return;
        for (const Json& block : content)
            if (block["type"] == "tool_use") ids_.insert(block["id"].get<std::string>());
    }
    const std::set<std::string>& ids() const { return ids_; }

private:
    std::set<std::string> ids_;
    bool is_answered_ = false;
};

std::vector<Message> anthropic_messages_of(const Fields& body) {
    std::vector<Message> messages;
    if (const Json* system = body.any("system")) {
        Message first{.role = "system"};
        read_texts(*system, "system", first);
        messages.push_back(std::move(first));
    }
    const Json* given = body.list("messages");
    if (!given || given->empty()) throw wrong_field("messages", "must be a list of at least one message");
    const bool knows_all = !body.any("session") && !body.any("session_id");
    RecentCalls calls;
    for (std::size_t i = 0; i < given->size(); ++i) {
        const Fields entry((*given)[i], fmt::format("messages.{}", i));
        const std::string role = entry.required_text("role");
        if (role != "user" && role != "assistant")
            throw wrong_field(entry.name("role"),
                              fmt::format("is '{:.40}'; it must be user or assistant", role));
        const Json& content = entry.required("content");
        if (content.is_array())
            add_blocks(content, role, entry.name("content"), knows_all ? &calls.ids() : nullptr, messages);
        else if (content.is_string())
            messages.push_back({role, content.get<std::string>()});
        else
            entry.wrong("content", "a text or a list of blocks");
        calls.add(role, content);
    }
    return messages;
}

/// In OpenAI's shape, which the engine reads.
void read_anthropic_tools(const Fields& body, Parameters& parameters) {
    if (const Json* servers = body.list("mcp_servers"); servers && !servers->empty())
        throw wrong_field("mcp_servers",
                          "names servers of tools; this server runs none: give the client tools");
    const Json* given = body.list("tools");
    const Json* choice = body.object("tool_choice");
    if (!given || given->empty()) {
        if (choice) throw wrong_field("tool_choice", "may only be given with 'tools'");
        return;
    }
    Json tools = Json::array();
    for (std::size_t i = 0; i < given->size(); ++i) {
        const Fields tool((*given)[i], fmt::format("tools.{}", i));
        Json function = {{"name", tool.required_text("name")},
                         {"description", tool.text("description").value_or("")}};
        const Json* schema = tool.object("input_schema");
        if (!schema)
            throw wrong_field(tool.name("input_schema"),
                              "is missing; tools that the server runs are not offered");
        function["parameters"] = *schema;
        tools.push_back({{"type", "function"}, {"function", std::move(function)}});
    }
    Json shaped = {{"tools", std::move(tools)}};
    bool is_parallel = true;
    if (choice) {
        const Fields fields(*choice, "tool_choice");
        const std::string type = fields.required_text("type");
        if (type == "tool")
            shaped["tool_choice"] = {{"type", "function"},
                                     {"function", {{"name", fields.required_text("name")}}}};
        else if (type == "auto" || type == "none" || type == "any")
            shaped["tool_choice"] = type == "any" ? "required" : type;
        else
            throw wrong_field("tool_choice.type",
                              fmt::format("is '{:.40}'; it must be auto, any, tool or none", type));
        is_parallel = !fields.flag("disable_parallel_tool_use").value_or(false);
    }
    read_tools(Fields(shaped), parameters);
    parameters.set("parallel_tool_calls", is_parallel);
}

/// A format of answers: {"type": "json_schema", "schema": ...}.
void read_answer_format(const Fields& format, Parameters& parameters) {
    const std::string type = format.required_text("type");
    if (type != "json_schema")
        throw wrong_field(format.name("type"), fmt::format("is '{:.40}'; it must be json_schema", type));
    const Json* schema = format.object("schema");
    if (!schema) throw wrong_field(format.name("schema"), "is missing");
    parameters.set("json_schema", parameter_of(*schema));
}

void read_output_config(const Fields& body, Parameters& parameters) {
    if (const Json* format = body.object("output_format"))
        read_answer_format(Fields(*format, "output_format"), parameters);
    const Json* output = body.object("output_config");
    if (!output) return;
    const Fields fields(*output, "output_config");
    if (const Json* format = fields.object("format"))
        read_answer_format(Fields(*format, "output_config.format"), parameters);
    if (const auto effort = fields.text("effort")) parameters.set("reasoning_effort", *effort);
}

/// What would make another answer, and is not to be had.
void refuse_what_messages_lack(const Fields& body) {
    if (body.any("container"))
        throw wrong_field("container", "is not offered: this server runs no tools itself");
    const Json* management = body.object("context_management");
    if (!management) return;
    const Json* edits = Fields(*management, "context_management").list("edits");
    if (edits && !edits->empty())
        throw wrong_field("context_management.edits",
                          "are not offered; leave out what the model need not read again");
}

void read_anthropic_thinking(const Fields& body, Parameters& parameters) {
    bool thinks = false;
    if (const Json* thinking = body.object("thinking")) {
        const Fields fields(*thinking, "thinking");
        const std::string type = fields.required_text("type");
        thinks = type == "enabled" || type == "adaptive";
        if (!thinks && type != "disabled")
            throw wrong_field("thinking.type",
                              fmt::format("is '{:.40}'; it must be enabled, adaptive or disabled", type));
        const auto budget = fields.integer("budget_tokens", 1, kMostTokens);
        if (type == "enabled" && !budget) throw wrong_field(fields.name("budget_tokens"), "is missing");
        if (budget) parameters.set("reasoning_budget_tokens", *budget);
    }
    parameters.set("enable_thinking", thinks);
}

/// Their types and ranges, also of those that change no answer here.
void check_anthropic_fields(const Fields& body) {
    static_cast<void>(body.required_text("model"));
    static_cast<void>(body.number("temperature", 0, 1));
    static_cast<void>(body.number("top_p", 0, 1));
    static_cast<void>(body.integer("top_k", 0, INT32_MAX));
    static_cast<void>(body.text("service_tier"));
    if (const Json* metadata = body.object("metadata"))
        static_cast<void>(Fields(*metadata, "metadata").text("user_id"));
}

FieldNames anthropic_names(const Fields& body) {
    return {
        {"n_predict", "max_tokens"},
        {"stop", "stop_sequences"},
        {"reasoning_budget_tokens", "thinking.budget_tokens"},
        {"reasoning_effort", "output_config.effort"},
        {"json_schema", body.any("output_format") ? "output_format.schema" : "output_config.format.schema"}};
}

}  // namespace

ChatBody anthropic_request(const Json& given, const ModelInfo& model, bool needs_limit) {
    const Fields body(given);
    check_anthropic_fields(body);
    ChatBody chat{.request = {.messages = anthropic_messages_of(body),
                              .parameters = engine_parameters(given, kAnthropicFields)},
                  .options = {.names = anthropic_names(body)}};
    Request& request = chat.request;
    check_images(request.messages, model);
    Parameters& parameters = request.parameters;
    parameters.set("drop_oldest", false);
    refuse_what_messages_lack(body);
    const auto limit = body.integer("max_tokens", needs_limit ? 1 : 0, kMostTokens);
    if (needs_limit && !limit) throw wrong_field("max_tokens", "is missing");
    if (needs_limit) parameters.set("n_predict", *limit);
    if (const Json* stop = body.list("stop_sequences")) {
        for (const Json& text : *stop)
            if (!text.is_string()) body.wrong("stop_sequences", "a list of texts");
        parameters.set("stop", parameter_of(*stop));
    }
    read_anthropic_tools(body, parameters);
    check_can_call(parameters, model);
    read_output_config(body, parameters);
    read_anthropic_thinking(body, parameters);
    if (ends_with_answer(request.messages)) parameters.set("continue_final_message", true);
    read_session(body, parameters);
    return chat;
}

}  // namespace headrace::serve
