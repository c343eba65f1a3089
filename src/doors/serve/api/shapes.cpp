#include "doors/serve/api/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <random>
#include <span>

#include "doors/serve/request/chat_request.h"
#include "doors/serve/request/fields.h"

namespace headrace::serve {
namespace {

Json bytes_of(std::string_view text) {
    Json bytes = Json::array();
    for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
    return bytes;
}

/// The logarithm of a probability that rounding made 0 is no number of JSON.
double logarithm(float probability) {
    return probability > 0 ? std::log(static_cast<double>(probability)) : -1e4;
}

Json entry_of(std::int32_t token, const std::string& text, float probability, bool after_sampling) {
    Json entry = {{"id", token}, {"token", text}, {"bytes", bytes_of(text)}};
    if (after_sampling)
        entry["prob"] = probability;
    else
        entry["logprob"] = logarithm(probability);
    return entry;
}

double ratio(double of, double to) { return to > 0 ? of / to : 0; }

bool is_sequence(const Json& given) {
    return given.is_array() && !given.empty() &&
           std::ranges::any_of(given, [](const Json& entry) { return entry.is_number(); }) &&
           std::ranges::all_of(given,
                               [](const Json& entry) { return entry.is_number() || entry.is_string(); });
}

std::vector<std::int32_t> sequence_of(ServedModel& model, const Json& given, const std::string& place,
                                      bool special) {
    std::vector<std::int32_t> tokens;
    for (std::size_t i = 0; i < given.size(); ++i) {
        const Json& entry = given[i];
        if (entry.is_string()) {
            const auto more = model.engine().tokenize(entry.get<std::string>(), special && i == 0, true);
            tokens.insert(tokens.end(), more.begin(), more.end());
            continue;
        }
        const bool is_token = entry.is_number_integer() && entry >= 0 && entry < model.info().vocabulary_size;
        if (!is_token)
            throw wrong_field(fmt::format("{}[{}]", place, i),
                              fmt::format("is {}, and no token of the vocabulary, which ends at {}",
                                          entry.dump(), model.info().vocabulary_size - 1));
        tokens.push_back(entry.get<std::int32_t>());
    }
    return tokens;
}

std::string text_of_parts(const Json& object, const std::string& place) {
    const Fields fields(object, place);
    if (fields.any("multimodal_data"))
        throw wrong_field(fields.name("multimodal_data"), "is not taken: this model reads texts");
    if (const auto text = fields.text("prompt_string")) return *text;
    if (!fields.any("content") || !fields.any("content")->is_array())
        throw wrong_field(place, "must have a prompt_string or a list of content parts");
    Message message;
    read_content(fields, "content", message);
    if (!message.images.empty()) throw wrong_field(message.images.front().name, "is read in chats only");
    std::string text;
    for (const std::string& part : message.parts) text += part;
    return text;
}

std::vector<std::int32_t> prompt_of(ServedModel& model, const Json& given, const std::string& place,
                                    bool special) {
    if (given.is_string()) return model.engine().tokenize(given.get<std::string>(), special, true);
    if (given.is_object()) return model.engine().tokenize(text_of_parts(given, place), special, true);
    if (is_sequence(given)) return sequence_of(model, given, place, special);
    throw wrong_field(place, fmt::format("is {}; it must be a text, a list of tokens and texts, or an object "
                                         "with a prompt_string",
                                         given.is_array() ? "a list of other things" : kind_of(given)));
}

}  // namespace

std::string new_id(std::string_view prefix) {
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    static thread_local std::mt19937_64 random{std::random_device{}()};
    std::string id(prefix);
    for (int i = 0; i < 32; ++i) id += kLetters[random() % kLetters.size()];
    return id;
}

std::int64_t now() { return static_cast<std::int64_t>(std::time(nullptr)); }

std::string fingerprint() { return "b-headrace-" HEADRACE_VERSION; }

std::string weights_kind(const ModelInfo& info) {
    std::string_view text = info.description;
    for (int word = 0; word < 2; ++word) text.remove_prefix(std::min(text.find(' '), text.size() - 1) + 1);
    return std::string(text);
}

std::string_view finish_reason(const Reply& reply) {
    switch (reply.stop_reason) {
        case StopReason::none:  // of an empty prompt
        case StopReason::token_limit:
        case StopReason::context_full:
        case StopReason::time_limit: return "length";
        default: return reply.tool_calls.empty() ? "stop" : "tool_calls";
    }
}

Json usage_of(const std::vector<Reply>& replies, int choices) {
    std::int64_t prompt = 0, generated = 0, cached = 0, reasoning = 0;
    for (std::size_t i = 0; i < replies.size(); ++i) {
        if (i % static_cast<std::size_t>(choices) == 0) prompt += replies[i].prompt_tokens;
        cached = std::max(cached, replies[i].cached_tokens);
        generated += replies[i].generated_tokens;
        reasoning += replies[i].reasoning_tokens;
    }
    return {{"completion_tokens", generated},
            {"prompt_tokens", prompt},
            {"total_tokens", prompt + generated},
            {"prompt_tokens_details", {{"cached_tokens", cached}}},
            {"completion_tokens_details", {{"reasoning_tokens", reasoning}}}};
}

Json input_tokens_of(const RenderedPrompt& prompt) {
    return {{"object", "response.input_tokens"}, {"input_tokens", prompt.tokens.size()}};
}

Json progress_of(const PromptProgress& progress) {
    return {{"total", progress.total},
            {"cache", progress.cached},
            {"processed", progress.processed},
            {"time_ms", static_cast<std::int64_t>(progress.ms)}};
}

Json timings_of(const Reply& reply) {
    const Timings& times = reply.timings;
    const auto read = static_cast<double>(reply.prompt_tokens - reply.cached_tokens);
    const auto generated = static_cast<double>(reply.generated_tokens);
    Json timings = {{"cache_n", reply.cached_tokens},
                    {"prompt_n", reply.prompt_tokens - reply.cached_tokens},
                    {"prompt_ms", times.prompt_ms},
                    {"prompt_per_token_ms", ratio(times.prompt_ms, read)},
                    {"prompt_per_second", times.prompt_per_second},
                    {"predicted_n", reply.generated_tokens},
                    {"predicted_ms", times.generate_ms},
                    {"predicted_per_token_ms", ratio(times.generate_ms, generated)},
                    {"predicted_per_second", times.generated_per_second},
                    {"queued_ms", times.queued_ms}};
    if (reply.drafted_tokens > 0) {
        timings["draft_n"] = reply.drafted_tokens;
        timings["draft_n_accepted"] = reply.accepted_tokens;
    }
    return timings;
}

Json probabilities_of(ServedModel& model, const std::vector<std::int32_t>& tokens,
                      const std::vector<std::vector<TokenProbability>>& likeliest,
                      const std::vector<float>& own, std::size_t most, bool after_sampling) {
    Json all = Json::array();
    for (std::size_t i = 0; i < std::min({tokens.size(), likeliest.size(), own.size()}); ++i) {
        Json entry = entry_of(tokens[i], model.engine().detokenize({tokens[i]}), own[i], after_sampling);
        Json& top = entry[after_sampling ? "top_probs" : "top_logprobs"] = Json::array();
        for (const TokenProbability& other :
             std::span(likeliest[i]).first(std::min(most, likeliest[i].size())))
            top.push_back(entry_of(other.token, other.text, other.probability, after_sampling));
        all.push_back(std::move(entry));
    }
    return all;
}

std::vector<std::int32_t> text_tokens(const Reply& reply) {
    return {reply.tokens.begin(), reply.tokens.begin() + reply.text_tokens};
}

void add_warnings(Json& body, const ServedModel& model, const Reply& reply) {
    const std::vector<Warning> warnings = model.new_warnings(reply);
    if (warnings.empty()) return;
    Json& all = body["warnings"] = Json::array();
    for (const Warning& warning : warnings)
        all.push_back({{"parameter", warning.parameter}, {"message", warning.message}});
}

std::vector<std::vector<std::int32_t>> prompts_of(ServedModel& model, const Json& given, std::string_view key,
                                                  bool special) {
    constexpr std::size_t kMost = 4096;
    const std::string place(key);
    if (!given.is_array() || is_sequence(given)) return {prompt_of(model, given, place, special)};
    if (given.empty()) throw wrong_field(place, "is empty; it must have at least one prompt");
    if (given.size() > kMost)
        throw wrong_field(place, fmt::format("has {} prompts; at most {} are taken", given.size(), kMost));
    std::vector<std::vector<std::int32_t>> all;
    for (std::size_t i = 0; i < given.size(); ++i)
        all.push_back(prompt_of(model, given[i], fmt::format("{}[{}]", place, i), special));
    return all;
}

}  // namespace headrace::serve
