#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace headrace::cli {

/// Adds the commands of language models: chat, embed, bench-llm and parameters. The status of the one that
/// ran is stored there.
void add_language_commands(CLI::App& app, Status& status);

}  // namespace headrace::cli
