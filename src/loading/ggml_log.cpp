#include "loading/ggml_log.h"

#include <utility>

#include "base/log_line.h"

namespace headrace {
namespace {

void log_problem(LogLevel level, std::string line) {
    if (level >= LogLevel::warn) log(level, line);
}

void take_piece(ggml_log_level level, const char* text, void*) {
    static thread_local GgmlLines lines(log_problem);
    if (text) lines.take(log_level_of(level), text);
}

}  // namespace

std::optional<LogLevel> log_level_of(ggml_log_level level) {
    switch (level) {
        case GGML_LOG_LEVEL_CONT: return std::nullopt;
        case GGML_LOG_LEVEL_DEBUG: return LogLevel::debug;
        case GGML_LOG_LEVEL_WARN: return LogLevel::warn;
        case GGML_LOG_LEVEL_ERROR: return LogLevel::error;
        default: return LogLevel::info;
    }
}

void GgmlLines::take(std::optional<LogLevel> level, std::string_view text) {
    if (level) {
        end_line();
        level_ = *level;
    }
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        line_ += text.substr(0, end);
        if (end == std::string_view::npos) break;
        end_line();
        text.remove_prefix(end + 1);
    }
    if (line_.size() > kMaxLogMessage) end_line();
}

void GgmlLines::end_line() {
    if (!line_.empty()) say_(level_, std::exchange(line_, {}));
}

void capture_ggml_log() {
    ggml_log_callback set = nullptr, plain = nullptr;
    void *data = nullptr, *none = nullptr;
    ggml_log_get(&set, &data);
    ggml_log_set(nullptr, nullptr);
    ggml_log_get(&plain, &none);
    if (set == plain)
        ggml_log_set(take_piece, nullptr);
    else
        ggml_log_set(set, data);
}

}  // namespace headrace
