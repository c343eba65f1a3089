#pragma once
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/log.h"
#include "base/log_sink.h"
#include "doors/serve/request/json.h"

namespace headrace::serve {

/// What the program says while it serves: lines as the process's log has them, on stderr and, where one is
/// named, in a file. JSON lines have members of their own.
class ServerLog {
public:
    /// file: appended to; where that is not possible it has no lines.
    ServerLog(bool is_json, LogLevel least, const std::string& file = {});

    bool is_json() const { return is_json_; }
    /// The text, or {"time", "level", "message": text, ...more}.
    void say(LogLevel level, std::string_view text, const Json& more = Json::object()) const;
    /// The text, or {"time", "level", ...fields}.
    void note(LogLevel level, std::string_view text, const Json& fields) const;
    /// In the file alone: what is said on stdout.
    void keep(LogLevel level, std::string_view text) const;

private:
    std::string line_of(LogLevel level, std::string_view text, const Json& fields) const;

    const bool is_json_;
    const LogLevel least_;
    mutable std::mutex mutex_;
    mutable LogSink terminal_;
    mutable std::optional<LogSink> file_;
};

}  // namespace headrace::serve
