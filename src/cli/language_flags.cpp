#include "cli/language_flags.h"

#include <algorithm>
#include <string_view>

#include "base/log.h"

namespace headrace::cli {
namespace {

struct ChatFlag {
    std::string_view name;
    std::string_view option = {};  ///< of `headrace chat`, which is the same
    std::string_view why = {};     ///< it has no effect; neither: the command does that in any case
};

constexpr std::string_view kLineByLine = "an answer is asked for with each line; -p or -f asks and ends",
                           kPlainAnswers = "answers are shown as they are",
                           kHiddenPrompt = "the prompt is never repeated";

constexpr ChatFlag kChatFlags[] = {
    {"-sys", "--system"},
    {"--system-prompt", "--system"},
    {"-sysf", "--system-file"},
    {"--system-prompt-file", "--system-file"},
    {"-st", "--single-turn"},
    {"--server-base", "--server"},
    {"-cnv"},
    {"--conversation"},
    {"--show-timings"},
    {"--no-display-prompt"},
    {"-i", {}, kLineByLine},
    {"--interactive", {}, kLineByLine},
    {"-if", {}, kLineByLine},
    {"--interactive-first", {}, kLineByLine},
    {"-mli", {}, kLineByLine},
    {"--multiline-input", {}, kLineByLine},
    {"-co", {}, kPlainAnswers},
    {"--color", {}, kPlainAnswers},
    {"--simple-io", {}, kPlainAnswers},
    {"--display-prompt", {}, kHiddenPrompt},
    {"--verbose-prompt", {}, kHiddenPrompt},
    {"--no-show-timings", {}, "the line with the times is on stderr: 2>/dev/null"},
};

bool is_color(std::string_view word) { return word == "on" || word == "off" || word == "auto"; }

}  // namespace

void take_chat_flags(std::vector<std::string>& arguments, Parameters& parameters) {
    std::vector<std::string> rest;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string& argument = arguments[i];
        if (argument == "-no-cnv" || argument == "--no-conversation") {
            parameters.set("chat", false);
            continue;
        }
        const std::size_t equals = argument.starts_with("--") ? argument.find('=') : std::string::npos;
        const std::string name = argument.substr(0, equals);
        const auto* flag = std::ranges::find(kChatFlags, name, &ChatFlag::name);
        if (flag == std::end(kChatFlags)) {
            rest.push_back(argument);
        } else if (!flag->option.empty()) {
            rest.emplace_back(flag->option);
            if (equals != std::string::npos) rest.back() += argument.substr(equals);
        } else {
            const bool has_word =
                flag->why == kPlainAnswers && i + 1 < arguments.size() && is_color(arguments[i + 1]);
            if (!flag->why.empty()) tell_user(fmt::format("{} has no effect: {}", name, flag->why));
            if (has_word) ++i;
        }
    }
    arguments = std::move(rest);
}

}  // namespace headrace::cli
