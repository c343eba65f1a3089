#include "doors/serve/api/anthropic.h"

#include <fmt/format.h>

#include <optional>

#include "base/parameter_json.h"
#include "doors/serve/api/shapes.h"
#include "doors/serve/models/answering.h"
#include "doors/serve/request/fields.h"

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

/// A content that is a text or a list of text blocks.
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
        if (type != "text")
            throw wrong_field(
                block.name("type"),
                fmt::format("is '{:.40}'; this model reads texts, and no images or documents", type));
        message.parts.push_back(block.required_text("text"));
    }
    if (message.parts.size() == 1) message.content = std::exchange(message.parts, {}).front();
}

/// A message's blocks: texts, thoughts, uses of tools and their results, of which each is a message here.
void add_blocks(const Json& content, const std::string& role, const std::string& place,
                std::vector<Message>& messages) {
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
            if (const Json* inner = block.any("content")) read_texts(*inner, block.name("content"), result);
            messages.push_back(std::move(result));
        } else {
            throw wrong_field(
                block.name("type"),
                fmt::format("is '{:.40}', which a message of the {} cannot have here", type, role));
        }
    }
    if (message.parts.size() == 1) message.content = std::exchange(message.parts, {}).front();
    const bool is_empty = message.content.empty() && message.parts.empty() && message.tool_calls.empty() &&
                          message.reasoning.empty();
    if (!is_empty || content.empty()) messages.push_back(std::move(message));
}

std::vector<Message> anthropic_messages_of(const Fields& body) {
    std::vector<Message> messages;
    if (const Json* system = body.any("system")) {
        Message first{.role = "system"};
        read_texts(*system, "system", first);
        messages.push_back(std::move(first));
    }
    const Json* given = body.list("messages");
    if (!given || given->empty()) throw wrong_field("messages", "must be a list of at least one message");
    for (std::size_t i = 0; i < given->size(); ++i) {
        const Fields entry((*given)[i], fmt::format("messages.{}", i));
        const std::string role = entry.required_text("role");
        if (role != "user" && role != "assistant")
            throw wrong_field(entry.name("role"),
                              fmt::format("is '{:.40}'; it must be user or assistant", role));
        const Json& content = entry.required("content");
        if (content.is_array())
            add_blocks(content, role, entry.name("content"), messages);
        else if (content.is_string())
            messages.push_back({role, content.get<std::string>()});
        else
            entry.wrong("content", "a text or a list of blocks");
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
    if (!given || given->empty()) return;
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

Request anthropic_request(const Json& given, const ModelInfo& model, bool needs_limit) {
    const Fields body(given);
    Request request{.messages = anthropic_messages_of(body),
                    .parameters = engine_parameters(given, kAnthropicFields)};
    Parameters& parameters = request.parameters;
    parameters.set("drop_oldest", false);
    const auto limit = body.integer("max_tokens", needs_limit ? 1 : 0, kMostTokens);
    if (needs_limit) parameters.set("n_predict", limit.value_or(4096));
    if (const Json* stop = body.list("stop_sequences")) {
        for (const Json& text : *stop)
            if (!text.is_string()) body.wrong("stop_sequences", "a list of texts");
        parameters.set("stop", parameter_of(*stop));
    }
    read_anthropic_tools(body, parameters);
    check_can_call(parameters, model);
    read_output_config(body, parameters);
    bool thinks = false;
    if (const Json* thinking = body.object("thinking")) {
        const Fields fields(*thinking, "thinking");
        const std::string type = fields.required_text("type");
        thinks = type == "enabled" || type == "adaptive";
        if (!thinks && type != "disabled")
            throw wrong_field("thinking.type",
                              fmt::format("is '{:.40}'; it must be enabled or disabled", type));
        if (const auto budget = fields.integer("budget_tokens", 1, kMostTokens))
            parameters.set("reasoning_budget_tokens", *budget);
    }
    parameters.set("enable_thinking", thinks);
    if (ends_with_answer(request.messages)) parameters.set("continue_final_message", true);
    read_session(body, parameters);
    return request;
}

std::string_view stop_reason(const Reply& reply) {
    if (!reply.tool_calls.empty()) return "tool_use";
    switch (reply.stop_reason) {
        case StopReason::token_limit:
        case StopReason::time_limit: return "max_tokens";
        case StopReason::context_full: return "model_context_window_exceeded";
        case StopReason::stop_string:
        case StopReason::pattern: return "stop_sequence";
        default: return "end_turn";
    }
}

Json stopped(const Reply& reply) {
    const bool by_text = stop_reason(reply) == "stop_sequence";
    return {{"stop_reason", stop_reason(reply)},
            {"stop_sequence", by_text ? Json(reply.stop_detail) : Json()}};
}

class MessageWriter : public AnswerWriter {
public:
    MessageWriter(std::shared_ptr<ServedModel> model, std::size_t prompt_tokens)
        : model_(std::move(model)), prompt_tokens_(prompt_tokens) {}

    Json whole(const std::vector<Reply>& replies) override {
        const Reply& reply = replies.front();
        Json content = Json::array();
        if (!reply.reasoning.empty())
            content.push_back({{"type", "thinking"}, {"thinking", reply.reasoning}, {"signature", ""}});
        if (!reply.content.empty()) content.push_back({{"type", "text"}, {"text", reply.content}});
        for (const ToolCall& call : reply.tool_calls) {
            Json input = Json::parse(call.arguments, nullptr, false);
            if (!input.is_object()) input = Json::object();  // of an answer that was cut
            content.push_back({{"type", "tool_use"},
                               {"id", call.id.empty() ? new_id("toolu_") : call.id},
                               {"name", call.name},
                               {"input", std::move(input)}});
        }
        Json body = {{"id", id_},
                     {"type", "message"},
                     {"role", "assistant"},
                     {"content", std::move(content)},
                     {"model", model_->id()}};
        body.update(stopped(reply));
        body["usage"] = usage(reply);
        add_warnings(body, *model_, replies);
        return body;
    }

    std::string begin() override {
        return event_of({{"type", "message_start"},
                         {"message",
                          {{"id", id_},
                           {"type", "message"},
                           {"role", "assistant"},
                           {"content", Json::array()},
                           {"model", model_->id()},
                           {"stop_reason", nullptr},
                           {"stop_sequence", nullptr},
                           {"usage", {{"input_tokens", prompt_tokens_}, {"output_tokens", 0}}}}}},
                        "message_start");
    }

    std::string part(std::size_t, const MessagePart& part) override {
        std::string text;
        if (!part.reasoning.empty()) {
            text += open("thinking", {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}});
            text += delta({{"type", "thinking_delta"}, {"thinking", part.reasoning}});
        }
        if (!part.content.empty()) {
            text += open("text", {{"type", "text"}, {"text", ""}});
            text += delta({{"type", "text_delta"}, {"text", part.content}});
        }
        for (const MessagePart::Call& call : part.calls) {
            if (!call.name.empty())
                text += open(fmt::format("tool {}", call.index),
                             {{"type", "tool_use"},
                              {"id", call.id.empty() ? new_id("toolu_") : call.id},
                              {"name", call.name},
                              {"input", Json::object()}});
            if (!call.arguments.empty())
                text += delta({{"type", "input_json_delta"}, {"partial_json", call.arguments}});
        }
        return text;
    }

    std::string end(std::size_t, const Reply& reply) override {
        return close() +
               event_of({{"type", "message_delta"}, {"delta", stopped(reply)}, {"usage", usage(reply)}},
                        "message_delta");
    }
    std::string finish(const std::vector<Reply>&) override {
        return event_of({{"type", "message_stop"}}, "message_stop");
    }
    std::string failed(const ApiError& error) override { return event_of(anthropic_error(error), "error"); }
    std::string ping() const override { return event_of({{"type", "ping"}}, "ping"); }

private:
    static Json usage(const Reply& reply) {
        return {{"input_tokens", reply.prompt_tokens - reply.cached_tokens},
                {"cache_creation_input_tokens", 0},
                {"cache_read_input_tokens", reply.cached_tokens},
                {"output_tokens", reply.generated_tokens}};
    }
    /// A block of that name unless it is the open one.
    std::string open(const std::string& name, Json block) {
        if (open_ == name) return {};
        std::string text = close();
        open_ = name;
        return text +
               event_of(
                   {{"type", "content_block_start"}, {"index", index_}, {"content_block", std::move(block)}},
                   "content_block_start");
    }
    std::string delta(Json change) const {
        return event_of({{"type", "content_block_delta"}, {"index", index_}, {"delta", std::move(change)}},
                        "content_block_delta");
    }
    std::string close() {
        if (open_.empty()) return {};
        open_.clear();
        return event_of({{"type", "content_block_stop"}, {"index", index_++}}, "content_block_stop");
    }

    const std::shared_ptr<ServedModel> model_;
    const std::size_t prompt_tokens_;
    const std::string id_ = new_id("msg_");
    std::string open_;  // which block is
    int index_ = 0;
};

}  // namespace

Json anthropic_error(const ApiError& error) {
    std::string type = error.type;
    switch (error.status) {
        case 400:
        case 415: type = "invalid_request_error"; break;
        case 404:
        case 405: type = "not_found_error"; break;
        case 413: type = "request_too_large"; break;
        case 429: type = "rate_limit_error"; break;
        case 503: type = "overloaded_error"; break;
        case 504: type = "timeout_error"; break;
        case 500:
        case 501: type = "api_error"; break;
        default: break;
    }
    return {{"type", "error"}, {"error", {{"type", type}, {"message", error.what()}}}};
}

HttpResponse anthropic_messages(Service& service, const HttpRequest& http) {
    const Json body = parse_body(http.body);
    const auto model = service.model_for(body, ModelKind::text);
    service.check_request(body);
    Task task;
    task.requests.push_back(anthropic_request(body, model->info(), true));
    task.options.streams = Fields(body).flag("stream").value_or(false);
    const std::size_t tokens = task.options.streams ? model->render(task.requests.front()).tokens.size() : 0;
    return answer(model, http, std::move(task), std::make_unique<MessageWriter>(model, tokens));
}

HttpResponse anthropic_tokens(Service& service, const HttpRequest& http) {
    const Json body = parse_body(http.body);
    const auto model = service.model_for(body, ModelKind::text);
    const Request request = anthropic_request(body, model->info(), false);
    return {.body = text_of({{"input_tokens", model->render(request).tokens.size()}})};
}

}  // namespace headrace::serve
