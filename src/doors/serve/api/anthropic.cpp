#include "doors/serve/api/anthropic.h"

#include <fmt/format.h>

#include <utility>

#include "doors/serve/api/anthropic_request.h"
#include "doors/serve/api/shapes.h"
#include "doors/serve/models/answering.h"
#include "doors/serve/request/fields.h"

namespace headrace::serve {
namespace {

std::string_view stop_reason(const Reply& reply) {
    switch (reply.stop_reason) {
        case StopReason::token_limit:
        case StopReason::time_limit: return "max_tokens";
        case StopReason::context_full: return "model_context_window_exceeded";
        default: break;
    }
    if (!reply.tool_calls.empty()) return "tool_use";  // whole ones: a client runs them
    switch (reply.stop_reason) {
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
    explicit MessageWriter(std::shared_ptr<ServedModel> model) : model_(std::move(model)) {}

    Json whole(const std::vector<Reply>& replies) override {
        const Reply& reply = replies.front();
        Json content = Json::array();
        if (!reply.reasoning.empty())
            content.push_back(
                {{"type", "thinking"}, {"thinking", reply.reasoning}, {"signature", new_id("")}});
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
        add_warnings(body, *model_, replies.front());
        return body;
    }

    /// The first one says how much of the prompt was remembered, which the message begins with.
    std::string part(std::size_t, const MessagePart& part) override {
        std::string text;
        if (part.piece.progress) text += start(part.piece.progress->total, part.piece.progress->cached);
        if (!part.reasoning.empty()) {
            text += open(kThinking, {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}});
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
        Json body = {{"type", "message_delta"}, {"delta", stopped(reply)}, {"usage", usage(reply)}};
        add_warnings(body, *model_, reply);
        return start(reply.prompt_tokens, reply.cached_tokens) + close() + event_of(body, "message_delta");
    }
    std::string finish(const std::vector<Reply>&) override {
        return event_of({{"type", "message_stop"}}, "message_stop");
    }
    std::string failed(const ApiError& error) override { return event_of(anthropic_error(error), "error"); }
    std::string ping() const override { return event_of({{"type", "ping"}}, "ping"); }

private:
    static Json usage(std::int64_t prompt, std::int64_t cached, std::int64_t generated) {
        return {{"input_tokens", prompt - cached},
                {"cache_creation_input_tokens", 0},
                {"cache_read_input_tokens", cached},
                {"output_tokens", generated}};
    }
    static Json usage(const Reply& reply) {
        return usage(reply.prompt_tokens, reply.cached_tokens, reply.generated_tokens);
    }
    /// Once.
    std::string start(std::int64_t prompt, std::int64_t cached) {
        if (std::exchange(has_started_, true)) return {};
        return event_of({{"type", "message_start"},
                         {"message",
                          {{"id", id_},
                           {"type", "message"},
                           {"role", "assistant"},
                           {"content", Json::array()},
                           {"model", model_->id()},
                           {"stop_reason", nullptr},
                           {"stop_sequence", nullptr},
                           {"usage", usage(prompt, cached, 0)}}}},
                        "message_start");
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
        // Thoughts end with what would prove them; here they need no proof to be sent back.
        std::string text;
        if (open_ == kThinking) text = delta({{"type", "signature_delta"}, {"signature", new_id("")}});
        open_.clear();
        return text + event_of({{"type", "content_block_stop"}, {"index", index_++}}, "content_block_stop");
    }

    const std::shared_ptr<ServedModel> model_;
    static constexpr const char* kThinking = "thinking";

    const std::string id_ = new_id("msg_");
    std::string open_;  // which block is
    int index_ = 0;
    bool has_started_ = false;
};

/// "'messages.0.content' is empty" as their API writes it: "messages.0.content: is empty".
std::string anthropic_message(const ApiError& error) {
    std::string message = error.what();
    if (error.field.empty()) return message;
    const std::string quoted = "'" + error.field + "' ";
    if (message.starts_with(quoted)) message.erase(0, quoted.size());
    return message.starts_with(error.field + ":") ? message : error.field + ": " + message;
}

}  // namespace

Json anthropic_error(const ApiError& error) {
    std::string type = error.type;
    switch (error.status) {
        case 400:
        case 405:
        case 415: type = "invalid_request_error"; break;
        case 404: type = "not_found_error"; break;
        case 413: type = "request_too_large"; break;
        case 429: type = "rate_limit_error"; break;
        case 503: type = "overloaded_error"; break;
        case 504: type = "timeout_error"; break;
        case 500:
        case 501: type = "api_error"; break;
        default: break;
    }
    return {{"type", "error"}, {"error", {{"type", type}, {"message", anthropic_message(error)}}}};
}

namespace {

/// Clients name what they try of their API in a header.
bool interleaves_thinking(const HttpRequest& http) {
    return http.header("anthropic-beta").find("interleaved-thinking") != std::string_view::npos;
}

}  // namespace

HttpResponse anthropic_messages(Service& service, const HttpRequest& http) {
    const Json body = parse_body(http.body);
    const auto model = service.model_for(http, body);
    service.check_request(body);
    ChatBody chat =
        anthropic_request(body, model->info(), {.interleaves_thinking = interleaves_thinking(http)});
    Task task{.requests = {std::move(chat.request)}, .options = std::move(chat.options)};
    task.options.streams = Fields(body).flag("stream").value_or(false);
    Parameters& parameters = task.requests.front().parameters;
    add_api_defaults(*model, parameters);
    if (task.options.streams) parameters.set("return_progress", true);
    return answer(model, http, std::move(task), std::make_unique<MessageWriter>(model));
}

HttpResponse anthropic_tokens(Service& service, const HttpRequest& http) {
    const Json body = parse_body(http.body);
    const auto model = service.model_for(http, body);
    const ChatBody chat = anthropic_request(body, model->info(), {.needs_limit = false});
    return {.body =
                text_of({{"input_tokens", model->render(chat.request, chat.options.names).tokens.size()}})};
}

}  // namespace headrace::serve
