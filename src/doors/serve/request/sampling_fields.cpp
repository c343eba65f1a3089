#include "doors/serve/request/sampling_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace headrace::serve {
namespace {

/// Moves a number into the range; anything else is the engine's to judge.
void bound(Parameters& parameters, const char* name, double least, double most) {
    const ParameterValue* value = parameters.find(name);
    if (!value) return;
    double number = 0;
    if (const auto* real = std::get_if<double>(value))
        number = *real;
    else if (const auto* integer = std::get_if<std::int64_t>(value))
        number = static_cast<double>(*integer);
    else
        return;
    if (number < least || number > most) parameters.set(name, std::clamp(number, least, most));
}

/// llama-server's own spellings of it, lists and `false`, are the engine's to judge.
void check_logit_bias(const Fields& body) {
    constexpr double kMost = 100;
    const Json* biases = body.any("logit_bias");
    if (!biases || !biases->is_object()) return;
    for (const auto& [token, bias] : biases->items())
        if (bias.is_number() && !(std::abs(bias.get<double>()) <= kMost))
            throw wrong_field("logit_bias",
                              fmt::format("has {} for '{:.40}'; it must be a number from {} to {}",
                                          bias.dump(), token, -kMost, kMost));
}

void check_stop(const Fields& body) {
    constexpr std::size_t kMost = 4;
    const Json* stop = body.any("stop");
    if (stop && stop->is_array() && stop->size() > kMost)
        throw wrong_field("stop", fmt::format("has {} texts; at most {} are taken", stop->size(), kMost));
}

}  // namespace

void check_word(const Fields& fields, std::string_view name, std::initializer_list<std::string_view> words) {
    const auto word = fields.text(name);
    if (word && std::ranges::find(words, *word) == words.end())
        throw wrong_field(fields.name(name),
                          fmt::format("is '{:.40}'; it must be one of {}", *word, fmt::join(words, ", ")));
}

void check_openai_fields(const Fields& body) {
    constexpr double kMostPenalty = 2;
    static_cast<void>(body.number("temperature", 0, 2));
    static_cast<void>(body.number("top_p", 0, 1));
    for (const char* penalty : {"presence_penalty", "frequency_penalty"})
        static_cast<void>(body.number(penalty, -kMostPenalty, kMostPenalty));
    static_cast<void>(body.integer("seed", INT64_MIN, INT64_MAX));
    for (const char* text : {"user", "prompt_cache_key", "safety_identifier"})
        static_cast<void>(body.text(text));
    check_word(body, "service_tier", {"auto", "default", "flex", "scale", "priority", "fast"});
    check_word(body, "reasoning_effort", {"none", "minimal", "low", "medium", "high", "xhigh", "max"});
    check_logit_bias(body);
    check_stop(body);
    static_cast<void>(body.object("metadata"));
    static_cast<void>(body.flag("store"));
}

void bound_sampling(Parameters& parameters) {
    constexpr double kAny = 1e30;
    for (const char* name : {"temperature", "temp"}) bound(parameters, name, 0, kAny);
    bound(parameters, "top_p", 0, 1);
    bound_seed(parameters);
}

void bound_seed(Parameters& parameters) {
    const ParameterValue* value = parameters.find("seed");
    const auto* seed = value ? std::get_if<std::int64_t>(value) : nullptr;
    if (seed && (*seed < -1 || *seed > UINT32_MAX))
        parameters.set("seed", static_cast<std::int64_t>(static_cast<std::uint32_t>(*seed)));
}

}  // namespace headrace::serve
