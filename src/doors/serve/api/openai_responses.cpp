#include <fmt/format.h>

#include "doors/serve/api/openai.h"
#include "doors/serve/api/shapes.h"
#include "doors/serve/models/answering.h"
#include "doors/serve/request/fields.h"

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

/// An item of `input` as a message in the shape of chats.
void add_item(const Json& given, const std::string& place, Json& messages) {
    const Fields item(given, place);
    const std::string type = item.text("type").value_or("message");
    if (type == "message") {
        Json message = {{"role", item.required_text("role")}, {"content", item.required("content")}};
        messages.push_back(std::move(message));
    } else if (type == "function_call") {
        const Json call = {
            {"id", item.required_text("call_id")},
            {"type", "function"},
            {"function",
             {{"name", item.required_text("name")}, {"arguments", item.required_text("arguments")}}}};
        const bool joins = !messages.empty() && messages.back()["role"] == "assistant";
        if (!joins) messages.push_back({{"role", "assistant"}, {"content", ""}});
        messages.back()["tool_calls"].push_back(call);
    } else if (type == "function_call_output") {
        messages.push_back({{"role", "tool"},
                            {"tool_call_id", item.required_text("call_id")},
                            {"content", item.required("output")}});
    } else if (type == "reasoning") {
        std::string thoughts;
        if (const Json* content = item.list("content"))
            for (const Json& part : *content)
                if (part.is_object()) thoughts += part.value("text", "");
        if (!thoughts.empty())
            messages.push_back({{"role", "assistant"}, {"content", ""}, {"reasoning_content", thoughts}});
    } else {
        throw wrong_field(item.name("type"), fmt::format("is '{:.40}', which is not taken here", type));
    }
}

/// The same request in the shape of chats.
Json as_chat(const Json& given) {
    const Fields body(given);
    if (body.any("previous_response_id") || body.any("conversation"))
        throw wrong_field(
            "previous_response_id",
            "is not taken: this server keeps no responses; send the conversation, or name a 'session'");
    Json chat = Json::object();
    for (const auto& [name, value] : given.items())
        if (!kResponseFields.contains(name)) chat[name] = value;
    for (std::string_view name : {"model", "stream", "session"})
        if (const Json* value = body.any(name)) chat[std::string(name)] = *value;
    Json& messages = chat["messages"] = Json::array();
    if (const auto instructions = body.text("instructions"))
        messages.push_back({{"role", "system"}, {"content", *instructions}});
    const Json& input = body.required("input");
    if (input.is_string())
        messages.push_back({{"role", "user"}, {"content", input}});
    else if (input.is_array())
        for (std::size_t i = 0; i < input.size(); ++i)
            add_item(input[i], fmt::format("input[{}]", i), messages);
    else
        body.wrong("input", "a text or a list of items");
    if (messages.empty()) throw wrong_field("input", "is empty");
    chat["add_generation_prompt"] = true;
    chat["continue_final_message"] = false;
    if (const auto most = body.integer("max_output_tokens", 1, INT32_MAX)) chat["max_tokens"] = *most;
    if (const Json* reasoning = body.object("reasoning"))
        if (const auto effort = Fields(*reasoning, "reasoning").text("effort"))
            chat["reasoning_effort"] = *effort;
    if (const Json* tools = body.list("tools")) {
        for (std::size_t i = 0; i < tools->size(); ++i) {
            const Fields tool((*tools)[i], fmt::format("tools[{}]", i));
            if (tool.required_text("type") != "function")
                throw wrong_field(tool.name("type"), "must be function: this server runs no tools itself");
            Json function = {{"name", tool.required_text("name")}};
            for (std::string_view key : {"description", "parameters", "strict"})
                if (const Json* value = tool.any(key)) function[std::string(key)] = *value;
            chat["tools"].push_back({{"type", "function"}, {"function", std::move(function)}});
        }
        if (const Json* choice = body.any("tool_choice")) chat["tool_choice"] = *choice;
    }
    if (const Json* text = body.object("text"))
        if (const Json* format = Fields(*text, "text").object("format")) {
            const Fields fields(*format, "text.format");
            const std::string type = fields.required_text("type");
            chat["response_format"] = {{"type", type}};
            if (type == "json_schema") {
                if (!fields.object("schema")) throw wrong_field("text.format.schema", "is missing");
                chat["response_format"]["json_schema"] = {{"schema", *fields.object("schema")}};
            }
        }
    return chat;
}

ChatBody read_response(const Service& service, const Json& body, const ServedModel& model) {
    try {
        return service.read_chat(as_chat(body), model);
    } catch (const ApiError& error) {
        // By the name that the client knows it by.
        if (!error.field.starts_with("messages")) throw;
        std::string message = error.what();
        if (const auto at = message.find("messages"); at != std::string::npos)
            message.replace(at, 8, "input");
        throw ApiError(error.status, error.type, message, "input" + error.field.substr(8));
    }
}

class ResponseWriter : public AnswerWriter {
public:
    ResponseWriter(std::shared_ptr<ServedModel> model, Json request)
        : model_(std::move(model)), request_(std::move(request)) {}

    Json whole(const std::vector<Reply>& replies) override {
        const Reply& reply = replies.front();
        Json output = Json::array();
        if (!reply.reasoning.empty()) output.push_back(reasoning_item(new_id("rs_"), reply.reasoning));
        if (!reply.content.empty() || reply.tool_calls.empty())
            output.push_back(message_item(new_id("msg_"), reply.content, "completed"));
        for (const ToolCall& call : reply.tool_calls)
            output.push_back(call_item(new_id("fc_"), call, "completed"));
        Json body = response(status_of(reply), std::move(output), &reply);
        add_warnings(body, *model_, replies);
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
        if (!part.reasoning.empty()) {
            text += open(Item::reasoning, {});
            item_.text += part.reasoning;
            text += event("response.reasoning_text.delta",
                          placed({{"content_index", 0}, {"delta", part.reasoning}}));
        }
        if (!part.content.empty()) {
            text += open(Item::message, {});
            item_.text += part.content;
            text +=
                event("response.output_text.delta",
                      placed({{"content_index", 0}, {"delta", part.content}, {"logprobs", Json::array()}}));
        }
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
        std::string text = close();
        if (output_.empty()) {
            text += open(Item::message, {});
            text += close();
        }
        const std::string status(status_of(reply));
        return text + event("response." + status, {{"response", response(status, output_, &reply)}});
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
        ToolCall made;  ///< of a call
    };

    static std::string_view status_of(const Reply& reply) {
        return finish_reason(reply) == "length" ? "incomplete" : "completed";
    }
    static Json reasoning_item(const std::string& id, const std::string& text) {
        return {{"id", id},
                {"type", "reasoning"},
                {"summary", Json::array()},
                {"content", Json::array({{{"type", "reasoning_text"}, {"text", text}}})}};
    }
    static Json text_part(const std::string& text) {
        return {{"type", "output_text"},
                {"text", text},
                {"annotations", Json::array()},
                {"logprobs", Json::array()}};
    }
    static Json message_item(const std::string& id, const std::string& text, std::string_view status) {
        return {{"id", id},
                {"type", "message"},
                {"role", "assistant"},
                {"status", status},
                {"content", status == "completed" ? Json::array({text_part(text)}) : Json::array()}};
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
            {"truncation", "disabled"},
            {"metadata", given("metadata", Json::object())},
            {"usage", nullptr}};
        if (reply)
            body["usage"] = {{"input_tokens", reply->prompt_tokens},
                             {"input_tokens_details", {{"cached_tokens", reply->cached_tokens}}},
                             {"output_tokens", reply->generated_tokens},
                             {"output_tokens_details", {{"reasoning_tokens", 0}}},
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
            case Item::reasoning: return reasoning_item(item_.id, item_.text);
            case Item::call: return call_item(item_.id, item_.made, status);
            default: return message_item(item_.id, item_.text, status);
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
    std::string close() {
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
                text =
                    event("response.output_text.done",
                          placed({{"content_index", 0}, {"text", item_.text}, {"logprobs", Json::array()}}));
                text += event("response.content_part.done",
                              placed({{"content_index", 0}, {"part", text_part(item_.text)}}));
        }
        const Json done = item("completed");
        text += event("response.output_item.done", {{"output_index", output_.size()}, {"item", done}});
        output_.push_back(done);
        item_ = {};
        return text;
    }

    const std::shared_ptr<ServedModel> model_;
    const Json request_;
    const std::string id_ = new_id("resp_");
    const std::int64_t created_ = now();
    Json output_ = Json::array();
    Item item_;
    int sequence_ = 0;
};

}  // namespace

HttpResponse openai_responses(Service& service, const HttpRequest& http) {
    const Json body = parse_body(http.body);
    const auto model = service.model_for(body, ModelKind::text);
    ChatBody chat = read_response(service, body, *model);
    Task task{.requests = {chat.request}, .options = chat.options};
    return answer(model, http, std::move(task), std::make_unique<ResponseWriter>(model, body));
}

HttpResponse openai_response_tokens(Service& service, const HttpRequest& http) {
    const Json body = parse_body(http.body);
    const auto model = service.model_for(body, ModelKind::text);
    const ChatBody chat = read_response(service, body, *model);
    return {.body = text_of({{"object", "response.input_tokens"},
                             {"input_tokens", model->render(chat.request).tokens.size()}})};
}

}  // namespace headrace::serve
