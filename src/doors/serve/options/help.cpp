// What the program says of its options.
#include <fmt/format.h>

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

std::string serve_help() {
    std::string text =
        "headrace serve model.gguf [options]\n\n"
        "Serves a language model by the APIs of OpenAI, Anthropic, Ollama and llama-server.\n\n"
        "  --config FILE  options as lines of `name = value`; arguments and the environment come first\n";
    for (const Flag& flag : flags()) {
        if (flag.kind == FlagKind::is_ignored || flag.kind == FlagKind::is_refused) continue;
        std::string names;
        for (const std::string_view list : {flag.names, flag.negative})
            for (const std::string_view name : words(list))
                names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
        text += fmt::format("  {}{}{}\n", names, flag.value.empty() ? "" : " ", flag.value);
        const std::string summary = flag.summary.empty() ? fmt::format("the parameter {}", flag.parameter)
                                                         : std::string(flag.summary);
        text += fmt::format("      {}{}\n", summary,
                            flag.variable.empty() ? std::string() : fmt::format(" ({})", flag.variable));
    }
    return text;
}

}  // namespace headrace::serve
