#include "llm/blocks/block_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <memory>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#include "base/write_signals.h"
#include "llm/blocks/folder_ledger.h"
#include "llm/blocks/open_file.h"

namespace headrace::llm {
namespace {

constexpr auto kLockPatience = std::chrono::seconds(5);
constexpr std::string_view kUnfinishedEnding = ".tmp";
constexpr std::int64_t kAheadSeconds = 60;  // that clocks of machines which share a folder may differ

std::string error_text(int error) { return std::generic_category().message(error); }

/// Fewer than asked for at the file's end.
Result<std::size_t> read_at(int file, std::span<std::byte> into, std::size_t from) {
    std::size_t done = 0;
    while (done < into.size()) {
        const ssize_t got =
            pread(file, into.data() + done, into.size() - done, static_cast<off_t>(from + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return failure(Code::io, "{}", error_text(errno));
        if (got == 0) break;
        done += static_cast<std::size_t>(got);
    }
    return done;
}

int open_block(const std::string& path) {
    return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

/// The size that the header of an opened block's file states, before memory is taken for it.
Result<std::uint64_t> whole_size(int file) {
    if (file < 0)
        return failure(errno == ENOENT || errno == ENOTDIR ? Code::not_found : Code::io, "{}",
                       error_text(errno));
    struct stat status {};
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) return failure(Code::io, "it is no file");
    std::array<std::byte, kBlockHeaderBytes> beginning{};
    HR_ASSIGN(const std::size_t begun, read_at(file, beginning, 0));
    const auto bytes = static_cast<std::uint64_t>(status.st_size);
    if (begun < beginning.size() || block_file_size(beginning) != bytes)
        return invalid("it is cut off or damaged");
    return bytes;
}

Status write_bytes(int file, std::span<const std::byte> bytes) {
    WithoutWriteSignals guard;
    for (std::size_t done = 0; done < bytes.size();) {
        const ssize_t written = ::write(file, bytes.data() + done, bytes.size() - done);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) {
            const int error = written == 0 ? ENOSPC : errno;
            guard.note(error);
            return failure(Code::io, "{}", error_text(error));
        }
        done += static_cast<std::size_t>(written);
    }
    return success();
}

/// When a block was used, in nanoseconds. One of the future has it from a clock that was wrong: it would be
/// the youngest until then, and is the oldest.
std::int64_t time_of_use(const timespec& time) {
    if (time.tv_sec > std::time(nullptr) + kAheadSeconds) return 0;
    return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

/// Removes a file that a process has left behind when it was killed. False: one still writes it. With the
/// folder's lock held, so that no file is met between its creation and its own lock.
bool remove_if_left(int folder, const char* name) {
    const OpenFile file(openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (file.get() < 0) return errno == ENOENT;
    if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) return false;
    return unlinkat(folder, name, 0) == 0 || errno == ENOENT;
}

}  // namespace

/// A file on its way, which disappears unless it is finished.
struct BlockFolder::Unfinished {
    OpenFile file;
    std::string path;

    Unfinished(OpenFile opened, std::string at) : file(std::move(opened)), path(std::move(at)) {}
    Unfinished(Unfinished&& other) noexcept
        : file(std::move(other.file)), path(std::exchange(other.path, {})) {}
    ~Unfinished() {
        if (!path.empty()) unlink(path.c_str());
    }
};

BlockFolder::BlockFolder(std::string path, std::uint64_t most_bytes)
    : path_(std::move(path)), most_bytes_(most_bytes) {}

std::string BlockFolder::path_of(const BlockKey& key) const {
    return fmt::format("{}/{}", path_, file_name(key));
}

bool BlockFolder::has(const BlockKey& key) const {
    const OpenFile file(open_block(path_of(key)));
    const Result<std::uint64_t> bytes = whole_size(file.get());
    return bytes.ok();
}

Result<BlockFolder::Block> BlockFolder::read(const BlockKey& key, const BlockOrigin& origin,
                                             std::span<const std::int32_t> tokens) const {
    const std::string path = path_of(key);
    const auto refused = [&](const Error& error) {
        if (error.code == Code::invalid_argument) remove(key);
        return error.within(path);
    };
    const OpenFile file(open_block(path));
    const Result<std::uint64_t> bytes = whole_size(file.get());
    if (!bytes.ok()) return refused(bytes.error());
    HR_ASSIGN(AlignedBuffer whole,
              AlignedBuffer::allocate(static_cast<std::size_t>(bytes.value()), "a stored block"));
    const Result<std::size_t> got = read_at(file.get(), {whole.data(), whole.bytes()}, 0);
    if (!got.ok()) return refused(got.error());
    const Result<StoredBlock> stored = read_block({whole.data(), got.value()}, origin, tokens);
    if (!stored.ok()) return refused(stored.error());
    return Block{std::move(whole), stored.value()};
}

/// The last one first: one whose time is the same as that of a block before it goes before that.
void BlockFolder::touch(std::span<const BlockKey> text) const {
    if (is_read_only()) return;
    for (std::size_t i = text.size(); i-- > 0;)
        if (utimensat(AT_FDCWD, path_of(text[i]).c_str(), nullptr, AT_SYMLINK_NOFOLLOW) != 0 &&
            errno != ENOENT)
            return;
}

void BlockFolder::remove(const BlockKey& key) const { unlink(path_of(key).c_str()); }

Status BlockFolder::make_folder() const {
    std::error_code error;
    const std::filesystem::path parent = std::filesystem::path(path_).parent_path();
    if (!parent.empty()) std::filesystem::create_directories(parent, error);
    // Keys and values tell what was said: they are nobody else's.
    if (mkdir(path_.c_str(), 0700) == 0 || errno == EEXIST) return success();
    return failure(Code::io, "{}: {}", path_, error_text(errno));
}

Status BlockFolder::prepare() {
    HR_TRY(make_folder());
    HR_ASSIGN(const FolderLedger ledger, FolderLedger::lock(path_, kLockPatience));
    bytes_ = ledger.bytes().value_or(0);
    return success();
}

Status BlockFolder::write(std::span<const BlockKey> text, const BlockOrigin& origin,
                          std::span<const std::int32_t> tokens, const StoredBlock& block) {
    const std::vector<std::byte> head = block_head(origin, tokens, block);
    const std::uint64_t bytes = head.size() + block.state.size();
    if (bytes > most_bytes_)
        return unsupported("a block has {} bytes, and the folder {} at most", bytes, most_bytes_);
    if (has(text.back())) {
        touch(text);
        return success();
    }
    HR_TRY(make_folder());
    {
        HR_ASSIGN(Unfinished file, begin(text.back(), bytes));
        Status written = write_bytes(file.file.get(), head);
        if (written.ok()) written = write_bytes(file.file.get(), block.state);
        if (written.ok()) written = finish(file, path_of(text.back()));
        if (!written.ok()) {
            give_back(bytes);
            return written.error().within(path_);
        }
    }
    touch(text.first(text.size() - 1));
    return success();
}

/// A file that is counted, for that many bytes.
Result<BlockFolder::Unfinished> BlockFolder::begin(const BlockKey& key, std::uint64_t bytes) {
    HR_ASSIGN(const FolderLedger ledger, FolderLedger::lock(path_, kLockPatience));
    std::uint64_t taken = ledger.bytes().value_or(most_bytes_);
    if (taken > most_bytes_ - bytes) {
        HR_ASSIGN(taken, make_room(bytes));
    }
    HR_TRY(ledger.set_bytes(taken + bytes));
    bytes_ = taken + bytes;
    std::string path = fmt::format("{}.{:08x}{}", path_of(key), std::random_device()(), kUnfinishedEnding);
    OpenFile file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    const bool opened = file.get() >= 0;
    const int error = errno;
    Unfinished unfinished(std::move(file), opened ? std::move(path) : std::string());
    WithoutWriteSignals guard;
    if (opened && flock(unfinished.file.get(), LOCK_EX | LOCK_NB) == 0 &&
        ftruncate(unfinished.file.get(), static_cast<off_t>(bytes)) ==
            0)  // those who look see its whole size
        return unfinished;
    const int why = opened ? errno : error;
    guard.note(why);
    bytes_ = taken;
    (void)ledger.set_bytes(taken);
    return failure(Code::io, "{}: {}", path_, error_text(why));
}

/// The bytes that are taken when there is room for so many more. With the lock held.
Result<std::uint64_t> BlockFolder::make_room(std::uint64_t bytes) const {
    BlockIndex index = look();
    std::vector<BlockKey> gone;
    const bool fits = index.make_room(bytes, most_bytes_, gone);
    std::uint64_t left = 0;
    for (const BlockKey& key : gone) {
        struct stat file {};
        const std::string path = path_of(key);
        if (stat(path.c_str(), &file) != 0) continue;
        if (unlink(path.c_str()) != 0 && errno != ENOENT) left += static_cast<std::uint64_t>(file.st_size);
    }
    if (!fits || index.bytes() + left > most_bytes_ - bytes)
        return failure(Code::io, "{}: there is no room for {} bytes within the limit of {}", path_, bytes,
                       most_bytes_);
    return index.bytes() + left;
}

/// With the lock held, too: whoever looks through the folder meanwhile could miss both names.
Status BlockFolder::finish(Unfinished& file, const std::string& path) const {
    HR_ASSIGN(const FolderLedger ledger, FolderLedger::lock(path_, kLockPatience));
    if (rename(file.path.c_str(), path.c_str()) != 0)
        return failure(Code::io, "{}: {}", path, error_text(errno));
    file.path.clear();
    return success();
}

/// What lies in the folder now. With the lock held.
BlockIndex BlockFolder::look() const {
    BlockIndex index;
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path_.c_str()), closedir);
    if (!folder) return index;
    const int at = dirfd(folder.get());
    while (const dirent* entry = readdir(folder.get())) {
        const std::string_view name = entry->d_name;
        const std::optional<BlockKey> key = key_of_file(name);
        if (!key && !name.ends_with(kUnfinishedEnding)) continue;
        struct stat file {};
        if (fstatat(at, entry->d_name, &file, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(file.st_mode)) continue;
        const auto bytes = static_cast<std::uint64_t>(file.st_size);
        if (key)
            index.add(*key, bytes, time_of_use(file.st_mtim));
        else if (!remove_if_left(at, entry->d_name))
            index.add_fixed(bytes);
    }
    return index;
}

void BlockFolder::give_back(std::uint64_t bytes) {
    const Result<FolderLedger> ledger = FolderLedger::lock(path_, kLockPatience);
    if (!ledger.ok()) return;  // it stays counted until somebody looks
    const std::uint64_t taken = ledger.value().bytes().value_or(most_bytes_);
    const std::uint64_t left = taken - std::min(taken, bytes);
    bytes_ = left;
    (void)ledger.value().set_bytes(left);
}

}  // namespace headrace::llm
