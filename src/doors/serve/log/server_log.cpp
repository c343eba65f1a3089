#include "doors/serve/log/server_log.h"

#include <chrono>
#include <utility>

#include "base/log_line.h"

namespace headrace::serve {
namespace {

std::optional<LogSink> opened(const std::string& file) {
    if (file.empty()) return std::nullopt;
    Result<LogSink> sink = LogSink::open(file);
    if (!sink.ok()) return std::nullopt;
    return std::move(sink).value();
}

}  // namespace

ServerLog::ServerLog(bool is_json, LogLevel least, const std::string& file)
    : is_json_(is_json), least_(least), file_(opened(file)) {}

std::string ServerLog::line_of(LogLevel level, std::string_view text, const Json& fields) const {
    const auto now = std::chrono::system_clock::now();
    if (!is_json_) return format_log_line({.level = level, .message = text}, false, now);
    Json line = {{"time", log_time(now)}, {"level", log_level_name(level)}};
    line.update(fields);
    return text_of(line) + '\n';
}

void ServerLog::say(LogLevel level, std::string_view text, const Json& more) const {
    Json fields = {{"message", text}};
    fields.update(more);
    note(level, text, fields);
}

void ServerLog::note(LogLevel level, std::string_view text, const Json& fields) const {
    if (level < least_) return;
    const std::string line = line_of(level, text, fields);
    const std::lock_guard lock(mutex_);
    terminal_.write(line);
    if (file_) file_->write(line);
}

void ServerLog::keep(LogLevel level, std::string_view text) const {
    if (level < least_ || !file_) return;
    const std::string line = line_of(level, text, {{"message", text}});
    const std::lock_guard lock(mutex_);
    file_->write(line);
}

}  // namespace headrace::serve
