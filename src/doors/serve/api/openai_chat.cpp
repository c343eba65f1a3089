#include <utility>

#include "doors/serve/api/openai.h"
#include "doors/serve/api/openai_writer.h"

namespace headrace::serve {
namespace {

class ChatWriter : public OpenAiWriter {
public:
    ChatWriter(std::shared_ptr<ServedModel> model, AnswerOptions options, std::string prompt)
        : OpenAiWriter(std::move(model), options, "chat.completion.chunk", "chatcmpl-"),
          prompt_(std::move(prompt)),
          ids_(static_cast<std::size_t>(options.choices)),
          unsent_(ids_.size(), Json::array()) {}

    Json whole(const std::vector<Reply>& replies) override {
        Json choices = Json::array();
        for (std::size_t i = 0; i < replies.size(); ++i) choices.push_back(choice_of(i, replies[i]));
        Json body = envelope(std::move(choices));
        body["object"] = "chat.completion";
        add_counts(body, replies);
        if (options_.shows_prompt)
            body["__verbose"] = {{"prompt", prompt_}, {"content", replies.front().text}};
        add_warnings(body, *model_, replies.front());
        return body;
    }

    std::string begin() override {
        std::string text;
        for (std::size_t i = 0; i < ids_.size(); ++i)
            text += chunk(i, {{"role", "assistant"}, {"content", nullptr}});
        return text;
    }

    std::string part(std::size_t choice, const MessagePart& part) override {
        if (part.piece.progress) return progress(choice, *part.piece.progress);
        if (options_.shows_probabilities)
            for (Json& entry : probabilities_of(*model_, part.piece.new_tokens, part.piece.probabilities,
                                                part.piece.token_probabilities, options_.likeliest))
                unsent_[choice].push_back(std::move(entry));
        std::string text;
        const auto add = [&](Json delta) {
            text += chunk(choice, std::move(delta), nullptr, take_unsent(choice));
        };
        if (!part.reasoning.empty()) add({{"reasoning_content", part.reasoning}});
        if (!part.content.empty()) add({{"content", part.content}});
        for (const MessagePart::Call& call : part.calls)
            add(options_.uses_functions ? Json{{"function_call", function_delta(call)}}
                                        : Json{{"tool_calls", Json::array({call_delta(choice, call)})}});
        return text;
    }

    std::string end(std::size_t choice, const Reply& reply) override {
        Json body = chunk_of(choice, Json::object(), reason_of(reply), take_unsent(choice));
        if (!options_.includes_usage) body["timings"] = timings_of(reply);
        add_warnings(body, *model_, reply);
        return event_of(body);
    }

private:
    Json choice_of(std::size_t index, const Reply& reply) {
        Json message = {{"role", "assistant"}};
        const bool only_calls = reply.content.empty() && !reply.tool_calls.empty();
        message["content"] = only_calls ? Json() : Json(reply.content);
        if (!reply.reasoning.empty()) message["reasoning_content"] = reply.reasoning;
        for (std::size_t i = 0; i < reply.tool_calls.size(); ++i) {
            const ToolCall& call = reply.tool_calls[i];
            if (options_.uses_functions) {
                message["function_call"] = {{"name", call.name}, {"arguments", call.arguments}};
                break;
            }
            message["tool_calls"].push_back(
                {{"type", "function"},
                 {"function", {{"name", call.name}, {"arguments", call.arguments}}},
                 {"id", call_id(index, i, call.id)}});
        }
        Json choice = {{"finish_reason", reason_of(reply)}, {"index", index}, {"message", message}};
        if (options_.shows_probabilities) {
            choice["logprobs"] = {
                {"content", probabilities_of(*model_, text_tokens(reply), reply.probabilities,
                                             reply.token_probabilities, options_.likeliest)}};
        }
        return choice;
    }

    std::string reason_of(const Reply& reply) const {
        const std::string_view reason = finish_reason(reply);
        return options_.uses_functions && reason == "tool_calls" ? "function_call" : std::string(reason);
    }

    /// Probabilities of tokens whose text was held back until it was certain what it is.
    Json take_unsent(std::size_t choice) {
        if (unsent_[choice].empty()) return {};
        return std::exchange(unsent_[choice], Json::array());
    }

    const std::string& call_id(std::size_t choice, std::size_t index, const std::string& given) {
        std::vector<std::string>& ids = ids_[choice];
        while (ids.size() <= index) ids.push_back(new_id("call_"));
        if (!given.empty()) ids[index] = given;
        return ids[index];
    }

    Json call_delta(std::size_t choice, const MessagePart::Call& call) {
        Json delta = {{"index", call.index}};
        if (!call.name.empty()) {
            delta["id"] = call_id(choice, call.index, call.id);
            delta["type"] = "function";
            delta["function"] = {{"name", call.name}, {"arguments", call.arguments}};
        } else {
            delta["function"] = {{"arguments", call.arguments}};
        }
        return delta;
    }

    static Json function_delta(const MessagePart::Call& call) {
        Json delta = {{"arguments", call.arguments}};
        if (!call.name.empty()) delta["name"] = call.name;
        return delta;
    }

    std::string progress(std::size_t choice, const PromptProgress& progress) {
        Json body = chunk_of(choice, Json::object(), Json(), Json());
        body["prompt_progress"] = progress_of(progress);
        return event_of(body);
    }

    Json chunk_of(std::size_t choice, Json delta, Json reason, Json probabilities) const {
        Json entry = {{"finish_reason", std::move(reason)}, {"index", choice}, {"delta", std::move(delta)}};
        if (!probabilities.is_null()) entry["logprobs"] = {{"content", std::move(probabilities)}};
        return envelope(Json::array({std::move(entry)}));
    }

    std::string chunk(std::size_t choice, Json delta, Json reason = nullptr,
                      Json probabilities = Json()) const {
        return event_of(chunk_of(choice, std::move(delta), std::move(reason), std::move(probabilities)));
    }

    const std::string prompt_;
    std::vector<std::vector<std::string>> ids_;  // of the tool calls of each choice
    std::vector<Json> unsent_;                   // likewise, probabilities
};

}  // namespace

HttpResponse openai_chat(Service& service, const HttpRequest& http) {
    const Json body = parse_body(http.body);
    const auto model = service.model_for(http, body);
    ChatBody chat = service.read_chat(body, *model);
    std::string prompt;
    if (chat.options.shows_prompt || service.options().verbose) {
        chat.options.shows_prompt = true;
        prompt = model->engine().detokenize(
            model->render(chat.request, chat.options.names).tokens);  // with the marks
    }
    Task task{.requests = choices_of(*model, chat.request, chat.options), .options = chat.options};
    return answer(model, http, std::move(task),
                  std::make_unique<ChatWriter>(model, chat.options, std::move(prompt)));
}

HttpResponse openai_chat_tokens(Service& service, const HttpRequest& http) {
    const Json body = parse_body(http.body);
    const auto model = service.model_for(http, body);
    const ChatBody chat = service.read_chat(body, *model);
    return {.body = text_of(input_tokens_of(model->render(chat.request, chat.options.names)))};
}

}  // namespace headrace::serve
