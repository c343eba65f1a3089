#include "doors/serve/api/ollama_writer.h"

#include <algorithm>
#include <utility>

#include "doors/serve/api/ollama_names.h"
#include "doors/serve/api/shapes.h"

namespace headrace::serve {
namespace {

std::int64_t nanoseconds(double ms) { return static_cast<std::int64_t>(ms * 1e6); }

std::string_view done_reason(const Reply& reply) {
    return finish_reason(reply) == "length" ? "length" : "stop";
}

Json call_shape(const ToolCall& call, std::size_t index) {
    Json parsed = Json::parse(call.arguments, nullptr, false);
    if (!parsed.is_object()) parsed = Json::object();
    return {{"function", {{"index", index}, {"name", call.name}, {"arguments", std::move(parsed)}}}};
}

Json call_shapes(const std::vector<ToolCall>& calls) {
    Json all = Json::array();
    for (std::size_t i = 0; i < calls.size(); ++i) all.push_back(call_shape(calls[i], i));
    return all;
}

std::string line_of(const Json& body) { return text_of(body) + "\n"; }

const std::string& text_in(const Reply& reply) {
    return reply.content.empty() && reply.reasoning.empty() ? reply.text : reply.content;
}

}  // namespace

Json OllamaWriter::whole(const std::vector<Reply>& replies) {
    const Reply& reply = replies.front();
    Json body = shaped(shown_.is_chat ? reply.content : text_in(reply), reply.reasoning,
                       call_shapes(reply.tool_calls), true);
    add_end(body, reply);
    if (shown_.logprobs >= 0)
        body["logprobs"] = logprobs_of(text_tokens(reply), reply.probabilities, reply.token_probabilities);
    return body;
}

Json OllamaWriter::answer_to_nothing(std::string_view reason) const {
    Json body = shaped("", "", Json::array(), true);
    body["done_reason"] = reason;
    return body;
}

std::string OllamaWriter::part(std::size_t, const MessagePart& part) {
    for (const MessagePart::Call& call : part.calls) {  // Ollama sends calls whole
        if (call.index >= calls_.size()) calls_.resize(call.index + 1);
        if (!call.name.empty()) calls_[call.index].name = call.name;
        calls_[call.index].arguments += call.arguments;
    }
    const Piece& piece = part.piece;
    const bool shows_logprobs = shown_.logprobs >= 0 && !piece.new_tokens.empty();
    if (part.content.empty() && part.reasoning.empty() && !shows_logprobs) return {};
    Json body = shaped(part.content, part.reasoning, Json::array(), false);
    if (shows_logprobs)
        body["logprobs"] = logprobs_of(piece.new_tokens, piece.probabilities, piece.token_probabilities);
    return line_of(body);
}

std::string OllamaWriter::end(std::size_t, const Reply& reply) {
    std::string text;
    if (!calls_.empty()) text = line_of(shaped("", "", call_shapes(calls_), false));
    Json body = shaped("", "", Json::array(), true);
    add_end(body, reply);
    return text + line_of(body);
}

std::string OllamaWriter::failed(const ApiError& error) { return line_of({{"error", error.what()}}); }

Json OllamaWriter::shaped(const std::string& content, const std::string& reasoning, Json calls,
                          bool is_done) const {
    Json body = {{"model", name_}, {"created_at", timestamp()}};
    if (shown_.is_chat) {
        Json& message = body["message"] = {{"role", "assistant"}, {"content", content}};
        if (shown_.thoughts && !reasoning.empty()) message["thinking"] = reasoning;
        if (!calls.empty()) message["tool_calls"] = std::move(calls);
    } else {
        body["response"] = content;
        if (shown_.thoughts && !reasoning.empty()) body["thinking"] = reasoning;
    }
    body["done"] = is_done;
    return body;
}

/// What the last line has besides.
void OllamaWriter::add_end(Json& body, const Reply& reply) const {
    const Timings& times = reply.timings;
    body["done_reason"] = done_reason(reply);
    const auto is_image = [](std::int32_t token) { return token < 0; };  // no request can send it again
    if (shown_.context && std::ranges::none_of(reply.prompt, is_image)) {
        std::vector<std::int32_t> tokens = reply.prompt;
        tokens.insert(tokens.end(), reply.tokens.begin(), reply.tokens.end());
        body["context"] = std::move(tokens);
    }
    body["total_duration"] = nanoseconds(times.queued_ms + times.prompt_ms + times.generate_ms);
    body["load_duration"] = nanoseconds(times.queued_ms);
    body["prompt_eval_count"] = reply.prompt_tokens;
    body["prompt_eval_duration"] = nanoseconds(times.prompt_ms);
    body["eval_count"] = reply.generated_tokens;
    body["eval_duration"] = nanoseconds(times.generate_ms);
    add_warnings(body, *model_, reply);
    for (const Warning& warning : shown_.warnings)
        body["warnings"].push_back({{"parameter", warning.parameter}, {"message", warning.message}});
}

Json OllamaWriter::logprobs_of(const std::vector<std::int32_t>& tokens,
                               const std::vector<std::vector<TokenProbability>>& likeliest,
                               const std::vector<float>& own) const {
    Json all = probabilities_of(*model_, tokens, likeliest, own, static_cast<std::size_t>(shown_.logprobs));
    for (Json& entry : all) {
        entry.erase("id");
        Json& top = entry["top_logprobs"];
        for (Json& other : top) other.erase("id");
        if (top.empty()) entry.erase("top_logprobs");
    }
    return all;
}

}  // namespace headrace::serve
