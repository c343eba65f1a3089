#include "cli/help.h"

#include <string_view>
#include <utility>

#include "base/replace_all.h"

namespace headrace::cli {

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
    std::string text = CLI::Formatter::make_option_opts(option);
    if (const std::size_t colon = text.find(":{"); colon != text.npos) {
        const std::size_t word = text.rfind(' ', colon) + 1;
        return text.erase(word, colon + 1 - word);
    }
    constexpr std::string_view kRange = ":INT in [";
    const std::size_t range = text.find(kRange), end = text.find(']', range);
    if (range == text.npos || end == text.npos) return text;
    std::string limits = text.substr(range + kRange.size(), end - range - kRange.size());
    replace_all(limits, " - ", " to ");
    return text.replace(range, end + 1 - range, " from " + limits);
}

std::string HelpFormatter::make_footer(const CLI::App* app) const {
    return CLI::Formatter::make_footer(app) +
           "\nExit status: 0 it is done, 1 it failed, 2 the command line is wrong\n";
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
    std::string text = CLI::Formatter::make_help(app, std::move(name), mode);
    replace_all(text, "\n\n\n", "\n\n");
    return text;
}

}  // namespace headrace::cli
