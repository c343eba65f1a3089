#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace headrace {

/// Where lines go: stderr, or a file that is appended to. A write that fails ends no process, whatever the
/// host's signal handlers are; the line is lost.
class LogSink {
public:
    LogSink();  ///< stderr
    /// Sinks of one file share it: it is opened once. A path that names another file by now, as after a
    /// rotation, is opened anew.
    static Result<LogSink> open(const std::string& path);

    /// Whether the line, which ends in a newline, was written.
    bool write(std::string_view line);
    std::string_view last_error() const { return last_error_; }

private:
    class File;
    explicit LogSink(std::shared_ptr<File> file) : file_(std::move(file)) {}
    std::shared_ptr<File> file_;
    std::string last_error_;
};

}  // namespace headrace
