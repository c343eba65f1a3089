#pragma once
#include <CLI/CLI.hpp>
#include <string>

namespace headrace::cli {

/// Helps as CLI11 lays them out, but for what an option takes: "{q8_0,q4_0}" and "N from 0 to 512", where it
/// writes ":{q8_0,q4_0}" and "N:INT in [0 - 512]"; for empty lines, of which there is one between groups; and
/// for the exit status, which each help ends with.
class HelpFormatter : public CLI::Formatter {
public:
    std::string make_option_opts(const CLI::Option* option) const override;
    std::string make_footer(const CLI::App* app) const override;
    std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

}  // namespace headrace::cli
