#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace headrace {

/// Where lines go: stderr, or a file that is appended to. A write that fails ends no process, whatever the
/// host's signal handlers are; the line is lost.
class LogSink {
public:
    LogSink() = default;  ///< stderr
    static Result<LogSink> open(const std::string& path);
    LogSink(LogSink&& other) noexcept;
    LogSink& operator=(LogSink&& other) noexcept;
    ~LogSink();

    /// Whether the line, which ends in a newline, was written.
    bool write(std::string_view line);
    std::string_view last_error() const { return last_error_; }

private:
    explicit LogSink(int file) : file_(file) {}
    int file_ = 2;
    bool is_torn_ = false;  // only a part of the last line was written
    std::string last_error_;
};

}  // namespace headrace
