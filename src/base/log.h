#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/result.h"

namespace headrace {

enum class LogLevel { debug, info, warn, error, none };

/// The session and request that a line belongs to; empty and 0 are left out.
struct LogContext {
    std::string_view session;
    std::uint64_t request = 0;
};

struct LogLine {
    LogLevel level;
    std::string_view message;
    LogContext context;
};

/// The log of what happens beside a call's result: models that are loaded, settings that changed nothing,
/// caches that could not be used. What fails is an Error instead. Thread-safe; a line is written whole, in
/// one write(2). Levels below HEADRACE_LOG_LEVEL (a compile-time number, 0 debug to 4 none) cost nothing in
/// HR_LOG. It starts as the environment says, else with text on stderr at the level info.
///
/// What cannot be written is lost, and counted in the next line that can. No signal handler is touched, and
/// none runs because of a closed pipe or a full disk.
void log(LogLevel level, std::string_view message, LogContext context = {});
bool log_enabled(LogLevel level);

/// Level and format ("text" or "json": one object a line) of the sinks; file: appended to and opened anew by
/// every call, empty for stderr. After an error everything is as it was.
Status set_log(LogLevel level, std::string_view format, const std::string& file);
Result<LogLevel> parse_log_level(std::string_view name);

/// HEADRACE_LOG, HEADRACE_LOG_FORMAT and HEADRACE_LOG_FILE as they were when the log began. What they have
/// wrong is a warning then, and as if they were not set.
struct LogEnvironment {
    std::string level = "info", format = "text", file;
};
LogEnvironment log_environment();

/// An additional sink, as an embedder's. The function runs under the log's lock; what it logs itself is
/// dropped.
void set_log_callback(std::function<void(const LogLine&)> sink);

/// What a program says to whoever typed its command, whatever the log's level: "headrace: TEXT" on stderr.
void tell_user(std::string_view text);

}  // namespace headrace

#ifndef HEADRACE_LOG_LEVEL
#define HEADRACE_LOG_LEVEL 0
#endif

/// HR_LOG(info, context, "loaded {} in {} ms", name, ms)
#define HR_LOG(level_name, context, ...)                                      \
    do {                                                                      \
        constexpr auto hr_level = ::headrace::LogLevel::level_name;           \
        if constexpr (static_cast<int>(hr_level) >= HEADRACE_LOG_LEVEL) {     \
            if (::headrace::log_enabled(hr_level))                            \
                ::headrace::log(hr_level, fmt::format(__VA_ARGS__), context); \
        }                                                                     \
    } while (0)
