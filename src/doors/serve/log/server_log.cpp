#include "doors/serve/log/server_log.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <unistd.h>

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

ServerLog::ServerLog(bool is_json, bool is_quiet, const std::string& file)
    : is_json_(is_json),
      is_quiet_(is_quiet),
      file_(file.empty() ? -1 : open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {}

ServerLog::~ServerLog() {
    if (file_ >= 0) close(file_);
}

/// In one write: the engine appends to the file, too.
void ServerLog::write_to_file(std::string line) const {
    if (file_ < 0) return;
    line += '\n';
    [[maybe_unused]] const ssize_t written = ::write(file_, line.data(), line.size());
}

void ServerLog::keep(Level level, const std::string& text) const {
    if (shows(level)) write_to_file(fmt::format("{} {:<5} {}", time_now(), name_of(level), text));
}

void ServerLog::say(Level level, const std::string& text, const Json& more) const {
    Json fields = {{"message", text}};
    fields.update(more);
    note(level, "headrace: " + text, fields);
}

void ServerLog::note(Level level, const std::string& text, const Json& fields) const {
    if (!shows(level)) return;
    if (!is_json_) {
        keep(level, text);
        return write_line(text);
    }
    Json line = {{"time", time_now()}, {"level", name_of(level)}};
    line.update(fields);
    write_to_file(text_of(line));
    write_line(text_of(line));
}

}  // namespace headrace::serve
