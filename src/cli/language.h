#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "llm/settings.h"

namespace headrace::cli {

/// The defaults, under what --parameters and --device say. The process's log is set to it, and gets the notes
/// on the parameters.
Result<llm::Settings> command_settings(const std::string& parameters, const std::vector<std::string>& devices,
                                       llm::Settings defaults = {});

/// Adds the commands of language models: chat, embed, bench-llm and parameters. The status of the one that
/// ran is stored there.
void add_language_commands(CLI::App& app, Status& status);

}  // namespace headrace::cli
