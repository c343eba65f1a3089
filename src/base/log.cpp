#include "llm/log/log.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "llm/log/log_line.h"
#include "llm/log/log_sink.h"

namespace headrace::llm {
namespace {

class Log {
public:
    /// Never destroyed: other threads and other objects' destructors may still log while the process ends.
    static Log& instance() {
        static Log& log = *new Log;
        return log;
    }

    bool is_enabled(LogLevel level) const {
        return level != LogLevel::none && level >= level_.load(std::memory_order_relaxed);
    }

    void write(const LogLine& line) {
        static thread_local bool is_writing = false;
        if (is_writing) return;  // the callback logs
        is_writing = true;
        {
            const std::lock_guard lock(mutex_);
            if (lost_ > 0) report_lost();
            put(line);
            call_back(line);
        }
        is_writing = false;
    }

    void configure(LogLevel level, bool is_json, LogSink sink) {
        const std::lock_guard lock(mutex_);
        level_ = level;
        is_json_ = is_json;
        sink_ = std::move(sink);
    }

    void set_callback(std::function<void(const LogLine&)> callback) {
        const std::lock_guard lock(mutex_);
        callback_ = std::move(callback);
    }

private:
    Log() {
        const char* name = std::getenv("HEADRACE_LOG");
        if (!name || !*name) return;
        const Result<LogLevel> level = parse_log_level(name);
        if (level)
            level_ = level.value();
        else
            write({.level = LogLevel::warn, .message = level.error().within("HEADRACE_LOG").message});
    }

    bool put(const LogLine& line) {
        if (sink_.write(format_log_line(line, is_json_, std::chrono::system_clock::now()))) return true;
        ++lost_;
        lost_to_ = sink_.last_error();
        return false;
    }

    void report_lost() {
        const std::uint64_t lost = lost_;
        const std::string message = fmt::format("{} lines of the log were lost: {}", lost, lost_to_);
        lost_ = put({.level = LogLevel::warn, .message = message}) ? 0 : lost;
    }

    void call_back(const LogLine& line) {
        if (!callback_) return;
        try {
            callback_(line);
        } catch (...) {
            // An embedder's sink that fails must not end what is being logged about.
        }
    }

    std::mutex mutex_;
    std::atomic<LogLevel> level_ = LogLevel::info;
    bool is_json_ = false;
    LogSink sink_;
    std::uint64_t lost_ = 0;  // lines
    std::string lost_to_;     // the error that the last one met
    std::function<void(const LogLine&)> callback_;
};

}  // namespace

void log(LogLevel level, std::string_view message, LogContext context) {
    if (log_enabled(level)) Log::instance().write({.level = level, .message = message, .context = context});
}

bool log_enabled(LogLevel level) { return Log::instance().is_enabled(level); }

Result<LogLevel> parse_log_level(std::string_view name) {
    for (const LogLevel level :
         {LogLevel::debug, LogLevel::info, LogLevel::warn, LogLevel::error, LogLevel::none})
        if (name == log_level_name(level)) return level;
    return invalid("the log level \"{}\" is not known: use debug, info, warn, error or none", name);
}

Status set_log(LogLevel level, std::string_view format, const std::string& file) {
    if (format != "text" && format != "json")
        return invalid("the log format \"{}\" is not known: use text or json", format);
    LogSink sink;
    if (!file.empty()) {
        HR_ASSIGN(sink, LogSink::open(file));
    }
    Log::instance().configure(level, format == "json", std::move(sink));
    return success();
}

void set_log_callback(std::function<void(const LogLine&)> sink) {
    Log::instance().set_callback(std::move(sink));
}

}  // namespace headrace::llm
