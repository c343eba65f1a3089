#include "near_tie.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace headrace::wasi_nn {

using namespace llm;
namespace {

using nlohmann::json;

constexpr int kAllTokens = 1 << 20;

/// llama.cpp draws one number for each token: the token is the one in whose part of the cumulative
/// distribution it falls.
double draw(std::uint32_t seed, std::size_t position) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform(0, 1);
    for (std::size_t i = 0; i < position; ++i) uniform(random);
    return uniform(random);
}

float probability_of(std::span<const TokenProbability> row, llama_token token) {
    for (const TokenProbability& entry : row)
        if (entry.token == token) return entry.probability;
    return 0;
}

/// How far the number drawn lies outside a token's part of the distribution at a temperature. Tokens that are
/// almost as likely may be sorted before or behind it.
double shift_to(std::span<const TokenProbability> row, llama_token token, double temperature,
                std::size_t top_k, double drawn) {
    std::vector<double> weights;
    for (const TokenProbability& entry : row.first(std::min(row.size(), top_k)))
        weights.push_back(std::pow(static_cast<double>(entry.probability), 1 / temperature));
    const float own = probability_of(row, token);
    if (own <= 0) return 1;
    double sum = 0, before = 0, beside = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        sum += weights[i];
        if (row[i].probability * kLeastRatio > own)
            before += weights[i];
        else if (row[i].probability >= kLeastRatio * own)
            beside += weights[i];  // and the token itself
    }
    return std::max({before / sum - drawn, drawn - (before + beside) / sum, 0.0});
}

std::vector<TokenProbability> row_of(const std::string& metadata, std::size_t position) {
    std::vector<TokenProbability> row;
    const json parsed = json::parse(metadata);
    for (const json& entry : parsed.at("probabilities").at(position))
        row.push_back({.token = entry.at("token"), .probability = entry.at("probability")});
    return row;
}

}  // namespace

std::optional<std::string> why_no_near_tie(std::span<const TokenProbability> row, llama_token observed,
                                           llama_token reference, std::size_t position,
                                           const std::string& parameters) {
    const float there = probability_of(row, observed), expected = probability_of(row, reference);
    // A token that is clearly likelier was not chosen alone either: a grammar forbids it.
    if (std::min(there, expected) >= kLeastRatio * std::max(there, expected) && there > 0) return {};
    const json options = json::parse(fmt::format("{{{}}}", parameters));
    const double temperature = options.at("temp");
    if (temperature > 0) {
        const double drawn = draw(options.at("seed"), position);
        const double shift = shift_to(row, observed, temperature, options.at("top_k"), drawn);
        if (shift <= kMostShift) return {};
        return fmt::format("token {} is {} in place of {}, and the number drawn, {:.3f}, is {:.3f} beside it",
                           position, observed, reference, drawn, shift);
    }
    return fmt::format("token {} is {} in place of {}, with probabilities {} and {}", position, observed,
                       reference, there, expected);
}

std::optional<std::string> why_wrong(ContextTable& service, GraphId graph, std::span<const Turn> turns,
                                     std::size_t turn, const Tokens& observed) {
    const Tokens& reference = turns[turn].tokens;
    const auto [there, expected] =
        std::mismatch(observed.begin(), observed.end(), reference.begin(), reference.end());
    if (there == observed.end() || expected == reference.end()) return "its tokens begin as the reference's";
    const auto position = static_cast<std::size_t>(there - observed.begin());
    const auto context = service.open(graph);
    if (!context.ok()) return context.error().message;
    Result<Answer> reply = Answer{};
    for (std::size_t i = 0; i <= turn && reply.ok(); ++i)
        reply = service.infer(
            context.value(), turns[i].text,
            fmt::format(R"({{{}, "cache_prompt": false, "return_tokens": true, "n_probs": {}}})",
                        turns[i].parameters, i == turn ? kAllTokens : 0));
    if (const auto closed = service.close(context.value()); !closed.ok()) return closed.error().message;
    if (!reply.ok()) return "it cannot be asked again: " + reply.error().message;
    const Tokens again = tokens_of(reply.value().metadata);
    if (again.size() <= position ||
        !std::equal(again.begin(), again.begin() + static_cast<std::ptrdiff_t>(position), reference.begin()))
        return "the conversation alone is not answered as before";
    return why_no_near_tie(row_of(reply.value().metadata, position), *there, *expected, position,
                           turns[turn].parameters);
}

Tokens tokens_of(const std::string& metadata) {
    return json::parse(metadata).value("tokens", json::array()).get<Tokens>();
}

}  // namespace headrace::wasi_nn
