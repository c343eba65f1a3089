#pragma once
#include <CLI/CLI.hpp>
#include <string>

#include <nlohmann/json.hpp>

#include "base/result.h"

namespace headrace::cli {

/// Where a command writes what it found for programs: a file, or "-", standard output in place of the text.
struct JsonOption {
    std::string path;

    bool replaces_text() const { return path == "-"; }
};

void add_json_option(CLI::App& command, JsonOption& json);

/// What a command found: as text on standard output, and as JSON where the option says.
Status report(const std::string& text, const nlohmann::json& value, const JsonOption& json);

}  // namespace headrace::cli
