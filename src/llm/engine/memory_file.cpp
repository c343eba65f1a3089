#include "llm/engine/memory_file.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

#include "base/replace_all.h"

namespace headrace::llm {

Result<MemoryFile> MemoryFile::of(std::string_view bytes) {
    MemoryFile made(memfd_create("headrace-model", MFD_CLOEXEC));
    if (made.file_ < 0) return failure(Code::io, "no memory file for a model: {}", std::strerror(errno));
    for (std::size_t done = 0; done < bytes.size();) {
        const ssize_t written = write(made.file_, bytes.data() + done, bytes.size() - done);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0)
            return failure(Code::out_of_memory, "{} bytes of a model cannot be copied: {}", bytes.size(),
                           std::strerror(errno));
        done += static_cast<std::size_t>(written);
    }
    return made;
}

MemoryFile::MemoryFile(MemoryFile&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

MemoryFile::~MemoryFile() {
    if (file_ >= 0) close(file_);
}

std::string MemoryFile::path() const { return fmt::format("/proc/self/fd/{}", file_); }

Error MemoryFile::within(Error error) const {
    replace_all(error.message, path(), "the model in memory");
    return error;
}

}  // namespace headrace::llm
