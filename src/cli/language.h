#pragma once
#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "doors/serve/options/options.h"
#include "headrace/language_model.h"
#include "llm/settings.h"

namespace headrace::cli {

/// What llama.cpp's flags say that stand among the options of chat, embed and bench-llm: -m, -c, --temp ...
struct ModelFlags {
    std::string model;
    Parameters parameters;
};

/// The program's arguments without those flags, as CLI11 parses them. Flags without effect are told on
/// standard error.
Result<std::vector<std::string>> take_model_flags(const CLI::App& app, std::span<char* const> arguments,
                                                  ModelFlags& flags);

/// The same over defaults, for what uses the engine itself. The process's log is set to the parameters, and
/// gets the notes on them.
Result<llm::Settings> command_settings(const Parameters& parameters, llm::Settings defaults = {});

/// Adds chat, embed and bench-llm, as those of commands.h. The flags are read before the commands run.
void add_language_commands(CLI::App& app, Status& status, const ModelFlags& flags);
/// What helps say of a parameter.
serve::ParameterHelp parameter_help(std::string_view name);
/// The table of parameters, as Markdown.
void add_parameters(CLI::App& app, Status& status);

}  // namespace headrace::cli
