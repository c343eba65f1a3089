#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace headrace::cli {

/// --device: repeated, with commas between the names, or both. `use` gets the names.
void add_device_option(CLI::App& command, const std::string& help,
                       std::function<void(const std::vector<std::string>&)> use,
                       const std::string& names = "--device");

}  // namespace headrace::cli
