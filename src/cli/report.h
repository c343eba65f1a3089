#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "base/result.h"

namespace headrace::cli {

/// Where a command writes what it found for programs: a file, or "-", standard output in place of the text.
struct JsonOption {
    std::string path;

    bool replaces_text() const { return path == "-"; }
};

/// "1 thread", "2 threads"
std::string threads_text(int threads);
/// "512 bytes", "40.3 kB", "1.2 MB"
std::string size_text(std::uintmax_t bytes);

void add_json_option(CLI::App& command, JsonOption& json);

/// What a command found: as text on standard output, and as JSON where the option says.
Status report(const std::string& text, const nlohmann::json& value, const JsonOption& json);

}  // namespace headrace::cli
