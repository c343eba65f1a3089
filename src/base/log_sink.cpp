#include "base/log_sink.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <system_error>
#include <vector>

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

/// An open file, which its sinks share, from any thread.
class LogSink::File {
public:
    explicit File(int descriptor) : descriptor_(descriptor) {}
    ~File() {
        if (descriptor_ > 2) ::close(descriptor_);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    /// 0, or the number of the error.
    int write(std::string_view line) {
        const std::lock_guard lock(mutex_);
        const std::string whole = (is_torn_ ? "\n" : "") + std::string(line);
        int error = 0;
        const std::size_t done = write_all(descriptor_, whole, error);
        if (done > 0) is_torn_ = whole[done - 1] != '\n';
        return error;
    }

    bool is(const struct stat& other) const {
        struct stat own = {};
        // Windows numbers no files.
        return ::fstat(descriptor_, &own) == 0 && own.st_ino != 0 && own.st_ino == other.st_ino &&
               own.st_dev == other.st_dev;
    }

private:
    std::mutex mutex_;
    const int descriptor_;
    bool is_torn_ = false;  // only a part of the last line was written
};

LogSink::LogSink() : file_(std::make_shared<File>(2)) {}

Result<LogSink> LogSink::open(const std::string& path) {
    // Never destroyed: a log may be opened while the process ends.
    static std::mutex& mutex = *new std::mutex;
    static std::vector<std::weak_ptr<File>>& files = *new std::vector<std::weak_ptr<File>>;
    const std::lock_guard lock(mutex);
    std::erase_if(files, [](const auto& file) { return file.expired(); });
    struct stat named = {};
    if (::stat(path.c_str(), &named) == 0)
        for (const auto& weak : files)
            if (const auto file = weak.lock(); file && file->is(named)) return LogSink(file);
    const int descriptor = ::open(path.c_str(), kAppend, 0644);
    if (descriptor < 0)
        return failure(Code::io, "log file {}: {}; name a file that can be written, or none for stderr", path,
                       describe(errno));
    const auto file = std::make_shared<File>(descriptor);
    files.push_back(file);
    return LogSink(file);
}

bool LogSink::write(std::string_view line) {
    const int error = file_->write(line);
    if (error != 0) last_error_ = describe(error);
    return error == 0;
}

}  // namespace headrace
