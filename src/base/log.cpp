#include "base/log.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include "base/log_line.h"
#include "base/log_sink.h"

namespace headrace {
namespace {

using Problems = std::vector<std::string>;

Status check_format(std::string_view name) {
    if (name == "text" || name == "json") return success();
    return invalid("the log format \"{}\" is not known: use text or json", name);
}

Result<LogSink> open_sink(const std::string& file) {
    if (file.empty()) return LogSink();
    return LogSink::open(file);
}

/// sink: of the file, which is opened once.
LogEnvironment read_environment(Problems& problems, LogSink& sink) {
    LogEnvironment found;
    const auto read = [&](const char* variable, const char* text, std::string& into, auto check) {
        if (!text || !*text) return;
        const Status status = check(text);
        if (status.ok())
            into = text;
        else
            problems.push_back(status.error().within(variable).message);
    };
    read("HEADRACE_LOG", std::getenv("HEADRACE_LOG"), found.level, [](std::string_view name) -> Status {
        HR_TRY(parse_log_level(name));
        return success();
    });
    read("HEADRACE_LOG_FORMAT", std::getenv("HEADRACE_LOG_FORMAT"), found.format, check_format);
    read("HEADRACE_LOG_FILE", std::getenv("HEADRACE_LOG_FILE"), found.file, [&](const char* name) -> Status {
        HR_ASSIGN(sink, open_sink(name));
        return success();
    });
    return found;
}

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

    const LogEnvironment& given() const { return given_; }

    void set_callback(std::function<void(const LogLine&)> callback) {
        const std::lock_guard lock(mutex_);
        callback_ = std::move(callback);
    }

private:
    Log() {
        Problems problems;
        given_ = read_environment(problems, sink_);
        level_ = parse_log_level(given_.level).value();
        is_json_ = given_.format == "json";
        for (const std::string& problem : problems) write({.level = LogLevel::warn, .message = problem});
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

    LogEnvironment given_;
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
    HR_TRY(check_format(format));
    HR_ASSIGN(LogSink sink, open_sink(file));
    Log::instance().configure(level, format == "json", std::move(sink));
    return success();
}

LogEnvironment log_environment() { return Log::instance().given(); }

void set_log_callback(std::function<void(const LogLine&)> sink) {
    Log::instance().set_callback(std::move(sink));
}

void tell_user(std::string_view text) { LogSink().write(fmt::format("headrace: {}\n", text)); }

}  // namespace headrace
