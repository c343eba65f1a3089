// What the program says of its options.
#include <fmt/format.h>

#include <algorithm>

#include "base/edit_distance.h"
#include "doors/serve/options/flags.h"
#include "doors/serve/options/options.h"

namespace headrace::serve {

std::vector<std::string_view> words(std::string_view text) {
    std::vector<std::string_view> all;
    while (!text.empty()) {
        const auto space = text.find(' ');
        if (space != 0) all.push_back(text.substr(0, space));
        text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
    }
    return all;
}

std::vector<std::string_view> flag_names(bool of_models) {
    std::vector<std::string_view> names;
    for (const Flag& flag : flags())
        if (!of_models || is_model_flag(flag))
            for (const std::string_view list : {flag.names, flag.negative})
                for (const std::string_view name : words(list)) names.push_back(name);
    return names;
}

std::string near_name(std::string_view name, std::span<const std::string_view> names) {
    std::string_view best;
    std::size_t nearest = 4;  // one more than the most
    // Short ones are all alike, and stand for quite different things.
    for (const std::string_view other :
         name.starts_with("--") ? names : std::span<const std::string_view>()) {
        const std::size_t distance = edit_distance(name, other, std::min(nearest, name.size() / 3 + 1));
        if (distance >= nearest || distance > name.size() / 3) continue;
        nearest = distance;
        best = other;
    }
    return std::string(best);
}

namespace {

std::string names_text(const Flag& flag) {
    std::string names;
    for (const std::string_view list : {flag.names, flag.negative})
        for (const std::string_view name : words(list))
            names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
    return names;
}

/// What the flag does, by its own text or by the parameter's, and its default.
std::string summary_text(const Flag& flag, const ParameterHelp& parameter) {
    std::string summary(flag.summary.empty() ? parameter.summary : flag.summary);
    if (summary.find("(default") != std::string::npos) return summary;
    if (flag.kind == FlagKind::a_switch) return parameter.usual == "true" ? summary + " (default)" : summary;
    if (!parameter.usual.empty()) summary += fmt::format(" (default: {})", parameter.usual);
    return summary;
}

std::string flag_text(const Flag& flag, const FindParameterHelp& find) {
    const std::string summary =
        summary_text(flag, flag.parameter.empty() ? ParameterHelp() : find(flag.parameter));
    return fmt::format("  {}{}{}\n      {}{}\n", names_text(flag), flag.value.empty() ? "" : " ", flag.value,
                       summary, flag.variable.empty() ? std::string() : fmt::format(" ({})", flag.variable));
}

bool is_shown(const Flag& flag) {
    return flag.kind != FlagKind::is_ignored && flag.kind != FlagKind::is_refused;
}

}  // namespace

std::string serve_help(const FindParameterHelp& find) {
    std::string text =
        "headrace serve model.gguf [options]\n"
        "headrace serve --models-dir FOLDER [options]\n\n"
        "Serves language models by the APIs of OpenAI, Anthropic, Ollama and llama-server.\n\n"
        "  --config FILE  options as lines of `name = value`; arguments and the environment come first\n";
    for (const Flag& flag : flags())
        if (is_shown(flag)) text += flag_text(flag, find);
    return text;
}

std::string sampling_help(const FindParameterHelp& find) {
    std::string text;
    for (const Flag& flag : flags())
        if (is_shown(flag) && !flag.parameter.empty() && find(flag.parameter).section == "sampling")
            text += flag_text(flag, find);
    return text;
}

}  // namespace headrace::serve
