#include "cli/report.h"

#include <cstdio>
#include <fstream>

namespace headrace::cli {

std::string threads_text(int threads) { return fmt::format("{} thread{}", threads, threads == 1 ? "" : "s"); }

std::string size_text(std::uintmax_t bytes) {
    const auto number = static_cast<double>(bytes);
    if (bytes < 1000) return fmt::format("{} bytes", bytes);
    return bytes < 1'000'000 ? fmt::format("{:.1f} kB", number / 1e3)
                             : fmt::format("{:.1f} MB", number / 1e6);
}

void add_json_option(CLI::App& command, JsonOption& json) {
    command
        .add_option("--json", json.path,
                    "write the result there, too; - writes it to standard output in place of the text")
        ->type_name("FILE");
}

Status report(const std::string& text, const nlohmann::json& value, const JsonOption& json) {
    if (!json.replaces_text()) std::fputs(text.c_str(), stdout);
    if (json.path.empty()) return success();
    // Names come from files and may be no UTF-8.
    const std::string written = value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
    if (json.replaces_text()) {
        std::fputs(written.c_str(), stdout);
        return success();
    }
    std::ofstream file(json.path);
    file << written;
    if (!file.flush()) return failure(Code::io, "cannot write '{}'", json.path);
    return success();
}

}  // namespace headrace::cli
