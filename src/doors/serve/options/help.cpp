// What the program says of its options.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

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

/// Rows of Markdown: each reason that flags of a kind have, with their names.
std::string rows_by_reason(FlagKind kind, bool with_negative) {
    std::vector<std::pair<std::string_view, std::string>> rows;  // in the table's order
    for (const Flag& flag : flags()) {
        if (flag.kind != kind) continue;
        auto row = std::ranges::find(rows, flag.summary, &std::pair<std::string_view, std::string>::first);
        if (row == rows.end()) row = rows.emplace(row, flag.summary, std::string());
        for (const std::string_view list : {flag.names, with_negative ? flag.negative : std::string_view()})
            for (const std::string_view name : words(list))
                row->second += fmt::format("{}`{}`", row->second.empty() ? "" : ", ", name);
    }
    std::string text;
    for (const auto& [reason, names] : rows) text += fmt::format("| {} | {} |\n", names, reason);
    return text;
}

/// Where a part of the help begins: a flag's first name, and the part's heading.
constexpr std::pair<std::string_view, std::string_view> kParts[] = {
    {"-h", "The program"},
    {"--host", "Where it listens, and to whom"},
    {"--models-dir", "Several models"},
    {"-v", "Log"},
    {"-m", "The model, its context and its memory"},
    {"-ngl", "Devices"},
    {"-lm", "How the file is read"},
    {"--lora", "LoRA adapters"},
    {"-mm", "Images"},
    {"--embedding", "Vectors and ranks"},
    {"-md", "Drafts"},
    {"--chat-template", "Chats and requests"},
    {"-n", "Sampling"},
};

std::string heading_before(const Flag& flag) {
    const auto part = std::ranges::find(kParts, words(flag.names).front(),
                                        &std::pair<std::string_view, std::string_view>::first);
    return part == std::end(kParts) ? "" : fmt::format("\n{}:\n", part->second);
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
        if (is_shown(flag)) text += heading_before(flag) + flag_text(flag, find);
    return text +
           "\nExamples:\n"
           "    headrace serve model.gguf --port 8080\n"
           "    headrace serve -m model.gguf -c 32768 -np 8 --api-key-file keys --metrics\n"
           "    headrace serve --models-dir /srv/models --models-memory-mib 24000\n"
           "    headrace serve chat.gguf --embed bge.gguf --rank reranker.gguf\n\n"
           "Exit status: 0 it was ended (SIGTERM, Ctrl-C), 1 it failed, 2 the command line is wrong";
}

std::string llama_server_flags_page() {
    std::string page = fmt::format(
        "# Flags of llama-server that do nothing here, or are refused\n\n"
        "`make docs` writes this page from the flags of `headrace serve`, which prints it by "
        "`headrace serve --llama-server-flags`. All other flags of llama-server mean the same here "
        "([options](serving.md#options)), some with [another default](serving.md#defaults-that-differ).\n\n"
        "A flag's variable of the environment (`LLAMA_ARG_...`) and its line in a file of `--config` have "
        "the same fate.\n\n"
        "## Taken, without effect\n\nThe server starts, and a line of its log says why.\n\n"
        "| flag | why |\n|---|---|\n{}\n"
        "## Refused\n\nThe server does not start: the exit status is 2, and one line says what to do "
        "instead. A switch that turns one of these off is taken, such as `--no-agent`.\n\n"
        "| flag | do this instead |\n|---|---|\n{}",
        rows_by_reason(FlagKind::is_ignored, true), rows_by_reason(FlagKind::is_refused, false));
    page.pop_back();  // the last line's end, which the program writes
    return page;
}

std::string sampling_help(const FindParameterHelp& find) {
    std::string text;
    for (const Flag& flag : flags())
        if (is_shown(flag) && !flag.parameter.empty() && find(flag.parameter).section == "sampling")
            text += flag_text(flag, find);
    return text;
}

}  // namespace headrace::serve
