#include "llm/blocks/file_hash.h"

#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <ostream>

#include "base/mapped_file.h"
#include "base/new_files.h"
#include "base/write_signals.h"

namespace headrace::llm {
namespace {

constexpr std::int64_t kSettledSeconds = 2;  // one that is younger may change without another time

struct Remembered {
    ContentHash hash, check;
};

ContentHash check_of(const Remembered& entry) { return content_hash(&entry.hash, sizeof(entry.hash)); }

std::string file_identity(const struct stat& file) {
    return fmt::format("{}:{}:{}:{}.{}:{}.{}", file.st_dev, file.st_ino, file.st_size, file.st_mtim.tv_sec,
                       file.st_mtim.tv_nsec, file.st_ctim.tv_sec, file.st_ctim.tv_nsec);
}

bool is_settled(const struct stat& file) {
    const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    return now - file.st_mtim.tv_sec >= kSettledSeconds && now - file.st_ctim.tv_sec >= kSettledSeconds;
}

void remember(const std::string& name, const ContentHash& hash) {
    Remembered entry{.hash = hash, .check = {}};
    entry.check = check_of(entry);
    const WithoutWriteSignals guard;
    NewFiles files;
    const Status written = files.write(name, [&](std::ostream& out) -> Status {
        out.write(reinterpret_cast<const char*>(&entry), sizeof(entry));
        return success();
    });
    if (written.ok()) (void)files.finish();
}

}  // namespace

Result<ContentHash> file_hash(const std::string& path, const std::string& folder) {
    struct stat file {};
    if (stat(path.c_str(), &file) != 0) return failure(Code::not_found, "{}: there is no such file", path);
    const std::string identity = file_identity(file);
    const ContentHash id = content_hash(identity.data(), identity.size());
    const std::string name = fmt::format("{}/{:016x}{:016x}.hash", folder, id.high, id.low);
    Remembered entry{};
    std::ifstream known(name, std::ios::binary);
    if (known.read(reinterpret_cast<char*>(&entry), sizeof(entry)) && entry.check == check_of(entry))
        return entry.hash;
    HR_ASSIGN(const auto mapped, MappedFile::open(path));
    const ContentHash hash = content_hash(mapped->bytes().data(), mapped->bytes().size());
    if (is_settled(file)) remember(name, hash);
    return hash;
}

}  // namespace headrace::llm
