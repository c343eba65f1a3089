#include "doors/serve/request/sampling_fields.h"

#include <algorithm>
#include <cstdint>

namespace headrace::serve {
namespace {

/// Of a number; anything else is the engine's to judge.
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

}  // namespace

void check_openai_fields(const Fields& body) {
    constexpr double kMostPenalty = 2;
    static_cast<void>(body.number("temperature", 0, 2));
    static_cast<void>(body.number("top_p", 0, 1));
    for (const char* penalty : {"presence_penalty", "frequency_penalty"})
        static_cast<void>(body.number(penalty, -kMostPenalty, kMostPenalty));
    static_cast<void>(body.integer("seed", INT64_MIN, INT64_MAX));
    for (const char* text : {"user", "service_tier", "prompt_cache_key", "safety_identifier"})
        static_cast<void>(body.text(text));
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
