#include "doors/serve/api/encoder_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "doors/serve/request/fields.h"

namespace headrace::serve {
namespace {

constexpr std::size_t kMostTexts = 4096;

/// A text that a request brings, or its tokens.
struct EncoderPrompt {
    std::string text;
    std::vector<std::int32_t> tokens;
    bool is_text = false;
};

bool is_token_list(const Json& given) {
    return given.is_array() && !given.empty() &&
           std::ranges::all_of(given, [](const Json& entry) { return entry.is_number(); });
}

EncoderPrompt read_prompt(const EncoderModel& model, const Json& given, const std::string& place) {
    if (given.is_string()) return {.text = given.get<std::string>(), .is_text = true};
    if (!is_token_list(given))
        throw wrong_field(place, fmt::format("is {}; it must be a text or a list of tokens",
                                             given.is_array() ? "a list of other things" : kind_of(given)));
    EncoderPrompt prompt;
    for (std::size_t i = 0; i < given.size(); ++i) {
        const Json& entry = given[i];
        if (!entry.is_number_integer() || entry < 0 || entry >= model.info().vocabulary_size)
            throw wrong_field(fmt::format("{}[{}]", place, i),
                              fmt::format("is {}, and no token of the vocabulary, which ends at {}",
                                          entry.dump(), model.info().vocabulary_size - 1));
        prompt.tokens.push_back(entry.get<std::int32_t>());
    }
    return prompt;
}

std::vector<EncoderPrompt> read_prompts(const EncoderModel& model, const Json& given, std::string_view key) {
    const std::string place(key);
    if (!given.is_array() || is_token_list(given)) return {read_prompt(model, given, place)};
    if (given.empty()) throw wrong_field(place, "is empty; it must have at least one prompt");
    if (given.size() > kMostTexts)
        throw wrong_field(place,
                          fmt::format("has {} prompts; at most {} are taken", given.size(), kMostTexts));
    std::vector<EncoderPrompt> all;
    for (std::size_t i = 0; i < given.size(); ++i)
        all.push_back(read_prompt(model, given[i], fmt::format("{}[{}]", place, i)));
    return all;
}

/// Where the request has "truncate": false.
void check_lengths(const EncoderModel& model, const std::vector<EncoderPrompt>& prompts,
                   std::string_view key) {
    for (std::size_t i = 0; i < prompts.size(); ++i) {
        if (!prompts[i].is_text) continue;
        const auto size =
            model.encoder().tokenizer().encode(prompts[i].text, {.most_tokens = INT32_MAX}).ids.size();
        if (static_cast<std::int64_t>(size) <= model.info().most_tokens) continue;
        throw wrong_field(prompts.size() > 1 ? fmt::format("{}[{}]", key, i) : std::string(key),
                          fmt::format("has {} tokens; this model reads {}", size, model.info().most_tokens));
    }
}

/// A graph's vectors have the length that the server's options or the model's folder say.
void check_norm(const EncoderModel& model, const Fields& fields) {
    const auto norm = fields.integer("embd_normalize", -1, 1 << 20);
    const std::int64_t own = model.info().normalizes ? 2 : -1;
    if (norm && *norm != own)
        throw wrong_field("embd_normalize", fmt::format("is {}; this model's vectors have {}", *norm, own));
}

EncodeCall call_of(const HttpRequest& http, const Fields& fields) {
    return {.is_cancelled = http.is_gone,
            .timeout = std::chrono::milliseconds(fields.integer("timeout_ms", 0, INT32_MAX).value_or(0))};
}

/// What `encode` gives; measured, and with errors of the API.
template <class Encode>
auto measured(EncoderModel& model, const HttpRequest& http, const std::string& field, const Encode& encode) {
    const auto place = model.places().enter(http.client, -1);
    const auto begin = std::chrono::steady_clock::now();
    try {
        auto made = encode();
        model.times().observe(
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
        return made;
    } catch (const Exception& error) {
        throw model.error_of(error, field);
    }
}

TextVectors encoded(const EncoderModel& model, std::vector<EncoderPrompt> prompts, const EncodeCall& call) {
    if (std::ranges::all_of(prompts, &EncoderPrompt::is_text)) {
        std::vector<std::string> texts;
        for (EncoderPrompt& prompt : prompts) texts.push_back(std::move(prompt.text));
        return model.encoder().embed(texts, call);
    }
    std::vector<std::vector<std::int32_t>> sequences;
    for (EncoderPrompt& prompt : prompts)
        sequences.push_back(prompt.is_text
                                ? model.encoder()
                                      .tokenizer()
                                      .encode(prompt.text, {.most_tokens = model.info().most_tokens})
                                      .ids
                                : std::move(prompt.tokens));
    return model.encoder().embed_tokens(sequences, call);
}

}  // namespace

std::vector<TextEmbedding> encode_texts(EncoderModel& model, const HttpRequest& http, const Json& body,
                                        std::string_view key) {
    const Fields fields(body);
    check_norm(model, fields);
    const EncodeCall call = call_of(http, fields);
    std::vector<EncoderPrompt> prompts = read_prompts(model, fields.required(key), key);
    if (!fields.flag("truncate").value_or(true)) check_lengths(model, prompts, key);
    TextVectors made =
        measured(model, http, std::string(key), [&] { return encoded(model, std::move(prompts), call); });
    std::vector<TextEmbedding> all(made.vectors.size());
    http.record->set_model(model.id());
    for (std::size_t i = 0; i < all.size(); ++i) {
        http.record->add({.prompt_tokens = made.tokens[i]});
        all[i].vectors.push_back(std::move(made.vectors[i]));
        all[i].tokens = made.tokens[i];
    }
    return all;
}

Ranking encode_pairs(EncoderModel& model, const HttpRequest& http, const Json& body, const std::string& query,
                     const std::vector<std::string>& documents) {
    const Fields fields(body);
    const bool is_raw = fields.flag("raw_scores").value_or(false);
    const EncodeCall call = call_of(http, fields);
    TextScores made =
        measured(model, http, "documents", [&] { return model.encoder().rank(query, documents, call); });
    Ranking ranking{.model = model.id(), .scores = std::move(made.scores)};
    for (const std::int64_t tokens : made.tokens) ranking.tokens += tokens;
    http.record->set_model(model.id());
    http.record->add({.prompt_tokens = ranking.tokens});
    if (!is_raw)
        for (float& score : ranking.scores) score = 1 / (1 + std::exp(-score));
    return ranking;
}

}  // namespace headrace::serve
