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

std::string serve_help(const std::function<std::string(std::string_view)>& default_of) {
    std::string text =
        "headrace serve model.gguf [options]\n"
        "headrace serve --models-dir FOLDER [options]\n\n"
        "Serves language models by the APIs of OpenAI, Anthropic, Ollama and llama-server.\n\n"
        "  --config FILE  options as lines of `name = value`; arguments and the environment come first\n";
    for (const Flag& flag : flags()) {
        if (flag.kind == FlagKind::is_ignored || flag.kind == FlagKind::is_refused) continue;
        std::string names;
        for (const std::string_view list : {flag.names, flag.negative})
            for (const std::string_view name : words(list))
                names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
        text += fmt::format("  {}{}{}\n", names, flag.value.empty() ? "" : " ", flag.value);
        std::string summary = flag.summary.empty() ? fmt::format("the parameter {}", flag.parameter)
                                                   : std::string(flag.summary);
        const std::string usual = flag.parameter.empty() ? "" : default_of(flag.parameter);
        const bool says_itself = summary.find("(default") != std::string::npos;
        const bool is_switch = flag.kind == FlagKind::a_switch;
        if (!says_itself && is_switch && usual == "true") summary += " (default)";
        if (!says_itself && !is_switch && !usual.empty()) summary += fmt::format(" (default: {})", usual);
        text += fmt::format("      {}{}\n", summary,
                            flag.variable.empty() ? std::string() : fmt::format(" ({})", flag.variable));
    }
    return text;
}

}  // namespace headrace::serve
