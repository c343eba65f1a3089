#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "headrace/language_model.h"
#include "llm/settings.h"

namespace headrace::cli {

/// What --parameters and --device say. Throws where the first is no JSON object.
Parameters command_parameters(const std::string& json, const std::vector<std::string>& devices);

/// The same over defaults, for what uses the engine itself. The process's log is set to it, and gets the
/// notes on the parameters.
Result<llm::Settings> command_settings(const std::string& parameters, const std::vector<std::string>& devices,
                                       llm::Settings defaults = {});

/// Adds chat, embed and bench-llm, as those of commands.h.
void add_language_commands(CLI::App& app, Status& status);
/// The table of parameters, as Markdown.
void add_parameters(CLI::App& app, Status& status);

}  // namespace headrace::cli
