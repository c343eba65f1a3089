#include "doors/serve/log/server_log.h"

#include <fmt/chrono.h>

#include <chrono>
#include <cstdio>

namespace headrace::serve {
namespace {

std::string_view name_of(ServerLog::Level level) {
    switch (level) {
        case ServerLog::Level::info: return "info";
        case ServerLog::Level::warn: return "warn";
        case ServerLog::Level::error: break;
    }
    return "error";
}

/// As the engine's lines have it.
std::string time_now() {
    const auto now = std::chrono::system_clock::now();
    const auto ms = std::chrono::floor<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(now)),
                       ms);
}

/// In one write: lines of several threads do not mix.
void write_line(std::string line) {
    line += '\n';
    std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace

void ServerLog::say(Level level, const std::string& text, const Json& more) const {
    Json fields = {{"message", text}};
    fields.update(more);
    note(level, "headrace: " + text, fields);
}

void ServerLog::note(Level level, const std::string& text, const Json& fields) const {
    if (!shows(level)) return;
    if (!is_json_) return write_line(text);
    Json line = {{"time", time_now()}, {"level", name_of(level)}};
    line.update(fields);
    write_line(text_of(line));
}

}  // namespace headrace::serve
