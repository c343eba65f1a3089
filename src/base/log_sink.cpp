#include "base/log_sink.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/write_signals.h"

namespace headrace {
namespace {

#ifdef _WIN32
constexpr int kAppend = O_WRONLY | O_APPEND | O_CREAT | O_BINARY;
#else
// Without O_NONBLOCK a pipe that nobody reads would stop the whole process; regular files ignore it.
constexpr int kAppend = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
#endif

std::string describe(int error) { return std::generic_category().message(error); }

/// Returns the bytes written; fewer than all with an error in `error`.
std::size_t write_all(int file, std::string_view text, int& error) {
    WithoutWriteSignals guard;
    std::size_t done = 0;
    while (done < text.size()) {
        const ssize_t written = ::write(file, text.data() + done, text.size() - done);
        if (written > 0) {
            done += static_cast<std::size_t>(written);
        } else if (written == 0 || errno != EINTR) {
            error = written == 0 ? EIO : errno;
            guard.note(error);
            break;
        }
    }
    return done;
}

}  // namespace

Result<LogSink> LogSink::open(const std::string& path) {
    const int file = ::open(path.c_str(), kAppend, 0644);
    if (file < 0)
        return failure(Code::io, "log file {}: {}; name a file that can be written, or none for stderr", path,
                       describe(errno));
    return LogSink(file);
}

LogSink::LogSink(LogSink&& other) noexcept { *this = std::move(other); }

LogSink& LogSink::operator=(LogSink&& other) noexcept {
    std::swap(file_, other.file_);
    std::swap(is_torn_, other.is_torn_);
    std::swap(last_error_, other.last_error_);
    return *this;
}

LogSink::~LogSink() {
    if (file_ > 2) ::close(file_);
}

bool LogSink::write(std::string_view line) {
    const std::string whole = (is_torn_ ? "\n" : "") + std::string(line);
    int error = 0;
    const std::size_t done = write_all(file_, whole, error);
    if (done == whole.size()) {
        is_torn_ = false;
        return true;
    }
    if (done > 0) is_torn_ = whole[done - 1] != '\n';
    last_error_ = describe(error);
    return false;
}

}  // namespace headrace
