#include <algorithm>

#include "doors/serve/api/openai.h"
#include "doors/serve/api/response_request.h"
#include "doors/serve/api/shapes.h"
#include "doors/serve/models/answering.h"
#include "doors/serve/request/fields.h"

namespace headrace::serve {
namespace {

ChatBody read_response(const Service& service, const Json& body, const ServedModel& model) {
    const ResponseChat given = chat_of_response(body);
    try {
        ChatBody chat = service.read_chat(given.chat, model, ChatRules::responses);
        chat.request.parameters.set("drop_oldest", drops_oldest(body));
        chat.options.names = given.names;
        return chat;
    } catch (const ApiError& error) {
        throw renamed(error, given.names);
    }
}

class ResponseWriter : public AnswerWriter {
public:
    ResponseWriter(std::shared_ptr<ServedModel> model, AnswerOptions options, Json request)
        : model_(std::move(model)), options_(options), request_(std::move(request)) {}

    Json whole(const std::vector<Reply>& replies) override {
        const Reply& reply = replies.front();
        Json output = Json::array();
        if (!reply.reasoning.empty())
            output.push_back(reasoning_item(new_id("rs_"), reply.reasoning, "completed"));
        if (!reply.content.empty() || (reply.tool_calls.empty() && output.empty()))
            output.push_back(
                message_item(new_id("msg_"), reply.content, content_probabilities(reply), "completed"));
        for (const ToolCall& call : reply.tool_calls)
            output.push_back(call_item(new_id("fc_"), call, "completed"));
        output.back()["status"] = status_of(reply);  // the answer was cut in the last one, if at all
        Json body = response(status_of(reply), std::move(output), &reply);
        add_warnings(body, *model_, replies.front());
        return body;
    }

    std::string begin() override {
        const Json body = response("in_progress", Json::array(), nullptr);
        std::string text = event("response.created", {{"response", body}});
        text += event("response.in_progress", {{"response", body}});
        return text;
    }

    std::string part(std::size_t, const MessagePart& part) override {
        std::string text;
        if (options_.shows_probabilities)
            append(unsent_, probabilities_of(*model_, part.piece.new_tokens, part.piece.probabilities,
                                             part.piece.token_probabilities, options_.likeliest));
        if (!part.reasoning.empty()) {
            text += open(Item::reasoning, {});
            item_.text += part.reasoning;
            text += event("response.reasoning_text.delta",
                          placed({{"content_index", 0}, {"delta", part.reasoning}}));
        }
        if (!part.content.empty()) {
            text += open(Item::message, {});
            item_.text += part.content;
            append(item_.probabilities, unsent_);
            text += event("response.output_text.delta",
                          placed({{"content_index", 0}, {"delta", part.content}, {"logprobs", unsent_}}));
        }
        // Thoughts and calls are not shown.
        if (!part.content.empty() || !part.reasoning.empty() || !part.calls.empty()) unsent_ = Json::array();
        for (const MessagePart::Call& call : part.calls) {
            if (!call.name.empty())
                text +=
                    open(Item::call, {.name = call.name, .id = call.id.empty() ? new_id("call_") : call.id});
            item_.made.arguments += call.arguments;
            if (!call.arguments.empty())
                text += event("response.function_call_arguments.delta", placed({{"delta", call.arguments}}));
        }
        return text;
    }

    std::string end(std::size_t, const Reply& reply) override {
        const std::string status(status_of(reply));
        std::string text;
        if (output_.empty() && item_.kind == Item::none) text = open(Item::message, {});
        text += close(status);
        Json body = response(status, output_, &reply);
        add_warnings(body, *model_, reply);
        return text +
               event("response." + status, {{"response", std::move(body)}, {"timings", timings_of(reply)}});
    }
    std::string finish(const std::vector<Reply>&) override { return {}; }
    std::string failed(const ApiError& error) override {
        return event("error", {{"code", error.type}, {"message", error.what()}, {"param", nullptr}});
    }

private:
    struct Item {
        enum Kind { none, reasoning, message, call };
        Kind kind = none;
        std::string id, text;
        Json probabilities = Json::array();  ///< of a message
        ToolCall made;                       ///< of a call
    };

    static std::string_view status_of(const Reply& reply) {
        return finish_reason(reply) == "length" ? "incomplete" : "completed";
    }
    static void append(Json& list, const Json& more) { list.insert(list.end(), more.begin(), more.end()); }
    /// Probabilities of the tokens at the answer's end that its content is of.
    Json content_probabilities(const Reply& reply) const {
        Json shown = Json::array();
        if (!options_.shows_probabilities || !reply.tool_calls.empty()) return shown;
        const Json all = probabilities_of(*model_, text_tokens(reply), reply.probabilities,
                                          reply.token_probabilities, options_.likeliest);
        std::size_t bytes = 0, first = all.size();
        while (first > 0 && bytes < reply.content.size())
            bytes += all[--first]["token"].get_ref<const std::string&>().size();
        shown.insert(shown.end(), all.begin() + static_cast<std::ptrdiff_t>(first), all.end());
        return shown;
    }
    static Json reasoning_item(const std::string& id, const std::string& text, std::string_view status) {
        return {{"id", id},
                {"type", "reasoning"},
                {"status", status},
                {"summary", Json::array()},
                {"content", Json::array({{{"type", "reasoning_text"}, {"text", text}}})}};
    }
    static Json text_part(const std::string& text, Json probabilities = Json::array()) {
        return {{"type", "output_text"},
                {"text", text},
                {"annotations", Json::array()},
                {"logprobs", std::move(probabilities)}};
    }
    static Json message_item(const std::string& id, const std::string& text, Json probabilities,
                             std::string_view status) {
        return {
            {"id", id},
            {"type", "message"},
            {"role", "assistant"},
            {"status", status},
            {"content", status == "in_progress" ? Json::array()
                                                : Json::array({text_part(text, std::move(probabilities))})}};
    }
    static Json call_item(const std::string& id, const ToolCall& call, std::string_view status) {
        return {{"id", id},          {"type", "function_call"},
                {"status", status},  {"call_id", call.id.empty() ? new_id("call_") : call.id},
                {"name", call.name}, {"arguments", call.arguments}};
    }

    Json response(std::string_view status, Json output, const Reply* reply) const {
        const auto given = [&](const char* key, Json otherwise) {
            const auto found = request_.find(key);
            return found == request_.end() ? std::move(otherwise) : *found;
        };
        Json body = {
            {"id", id_},
            {"object", "response"},
            {"created_at", created_},
            {"completed_at", reply && status == "completed" ? Json(now()) : Json()},
            {"status", status},
            {"error", nullptr},
            {"incomplete_details", status == "incomplete" ? Json{{"reason", "max_output_tokens"}} : Json()},
            {"instructions", given("instructions", nullptr)},
            {"max_output_tokens", given("max_output_tokens", nullptr)},
            {"model", model_->id()},
            {"output", std::move(output)},
            {"parallel_tool_calls", given("parallel_tool_calls", true)},
            {"previous_response_id", nullptr},
            {"reasoning", given("reasoning", {{"effort", nullptr}, {"summary", nullptr}})},
            {"store", false},
            {"temperature", given("temperature", nullptr)},
            {"text", given("text", {{"format", {{"type", "text"}}}})},
            {"tool_choice", given("tool_choice", "auto")},
            {"tools", given("tools", Json::array())},
            {"top_p", given("top_p", nullptr)},
            {"truncation", given("truncation", "disabled")},
            {"background", false},
            {"top_logprobs", given("top_logprobs", 0)},
            {"metadata", given("metadata", Json::object())},
            {"usage", nullptr}};
        if (reply)
            body["usage"] = {{"input_tokens", reply->prompt_tokens},
                             {"input_tokens_details",
                              {{"cached_tokens", reply->cached_tokens}, {"cache_write_tokens", 0}}},
                             {"output_tokens", reply->generated_tokens},
                             {"output_tokens_details", {{"reasoning_tokens", reply->reasoning_tokens}}},
                             {"total_tokens", reply->prompt_tokens + reply->generated_tokens}};
        return body;
    }

    std::string event(const std::string& type, Json data) {
        Json body = {{"type", type}, {"sequence_number", sequence_++}};
        body.update(data);
        return event_of(body, type);
    }
    Json placed(Json data) const {
        Json body = {{"item_id", item_.id}, {"output_index", output_.size()}};
        body.update(data);
        return body;
    }
    Json item(std::string_view status) const {
        switch (item_.kind) {
            case Item::reasoning: return reasoning_item(item_.id, item_.text, status);
            case Item::call: return call_item(item_.id, item_.made, status);
            default: return message_item(item_.id, item_.text, item_.probabilities, status);
        }
    }
    /// An item of that kind; a call is always another one.
    std::string open(Item::Kind kind, ToolCall call) {
        if (item_.kind == kind && kind != Item::call) return {};
        std::string text = close();
        constexpr std::string_view kPrefixes[] = {"", "rs_", "msg_", "fc_"};
        item_ = {.kind = kind, .id = new_id(kPrefixes[kind]), .text = "", .made = std::move(call)};
        text += event("response.output_item.added",
                      {{"output_index", output_.size()}, {"item", item("in_progress")}});
        if (kind == Item::message)
            text +=
                event("response.content_part.added", placed({{"content_index", 0}, {"part", text_part("")}}));
        return text;
    }
    /// status: of the item that was open.
    std::string close(std::string_view status = "completed") {
        std::string text;
        switch (item_.kind) {
            case Item::none: return {};
            case Item::reasoning:
                text = event("response.reasoning_text.done",
                             placed({{"content_index", 0}, {"text", item_.text}}));
                break;
            case Item::call:
                text = event("response.function_call_arguments.done",
                             placed({{"name", item_.made.name}, {"arguments", item_.made.arguments}}));
                break;
            case Item::message:
                text = event(
                    "response.output_text.done",
                    placed({{"content_index", 0}, {"text", item_.text}, {"logprobs", item_.probabilities}}));
                text += event(
                    "response.content_part.done",
                    placed({{"content_index", 0}, {"part", text_part(item_.text, item_.probabilities)}}));
        }
        const Json done = item(status);
        text += event("response.output_item.done", {{"output_index", output_.size()}, {"item", done}});
        output_.push_back(done);
        item_ = {};
        return text;
    }

    const std::shared_ptr<ServedModel> model_;
    const AnswerOptions options_;
    const Json request_;
    const std::string id_ = new_id("resp_");
    const std::int64_t created_ = now();
    Json output_ = Json::array();
    Json unsent_ = Json::array();  // probabilities of tokens whose text was held back
    Item item_;
    int sequence_ = 0;
};

}  // namespace

HttpResponse openai_responses(Service& service, const HttpRequest& http) {
    const Json body = parse_body(http.body);
    const auto model = service.model_for(http, body);
    ChatBody chat = read_response(service, body, *model);
    Task task{.requests = {chat.request}, .options = chat.options};
    return answer(model, http, std::move(task), std::make_unique<ResponseWriter>(model, chat.options, body));
}

HttpResponse openai_response_tokens(Service& service, const HttpRequest& http) {
    const Json body = parse_body(http.body);
    const auto model = service.model_for(http, body);
    const ChatBody chat = read_response(service, body, *model);
    return {.body = text_of(input_tokens_of(model->render(chat.request, chat.options.names)))};
}

}  // namespace headrace::serve
