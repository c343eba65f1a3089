#include "llm/blocks/folder_ledger.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <thread>

#include "base/write_signals.h"

namespace headrace::llm {
namespace {

constexpr auto kBetweenTries = std::chrono::milliseconds(2);

struct LedgerEntry {
    std::uint64_t bytes = 0, check = 0;  // all bits the other way round
};

/// Whether the file that was opened is still the one of that name.
bool is_at(int file, const std::string& path) {
    struct stat opened {};
    struct stat named {};
    return fstat(file, &opened) == 0 && stat(path.c_str(), &named) == 0 && opened.st_dev == named.st_dev &&
           opened.st_ino == named.st_ino;
}

}  // namespace

Result<FolderLedger> FolderLedger::lock(const std::string& folder, std::chrono::milliseconds patience) {
    const std::string path = folder + "/lock";
    const auto end = std::chrono::steady_clock::now() + patience;
    for (;;) {
        const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
        if (file < 0) return failure(Code::io, "{}: {}", path, std::generic_category().message(errno));
        FolderLedger ledger(file);
        while (flock(file, LOCK_EX | LOCK_NB) != 0) {
            if (errno != EWOULDBLOCK && errno != EINTR)
                return failure(Code::io, "{} cannot be locked: {}", path,
                               std::generic_category().message(errno));
            if (std::chrono::steady_clock::now() >= end)
                return failure(Code::busy, "{}: another process has kept the lock for {} ms", path,
                               patience.count());
            std::this_thread::sleep_for(kBetweenTries);
        }
        if (is_at(file, path)) return ledger;  // else somebody has emptied the folder meanwhile
    }
}

std::optional<std::uint64_t> FolderLedger::bytes() const {
    LedgerEntry entry;
    if (pread(file_.get(), &entry, sizeof(entry), 0) != sizeof(entry) || entry.check != ~entry.bytes)
        return std::nullopt;
    return entry.bytes;
}

Status FolderLedger::set_bytes(std::uint64_t bytes) const {
    const LedgerEntry entry{bytes, ~bytes};
    WithoutWriteSignals guard;
    if (pwrite(file_.get(), &entry, sizeof(entry), 0) == sizeof(entry)) return success();
    const int error = errno;
    guard.note(error);
    return failure(Code::io, "the count of bytes cannot be written: {}",
                   std::generic_category().message(error));
}

}  // namespace headrace::llm
