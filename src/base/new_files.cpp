#include "base/new_files.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <random>
#include <system_error>

namespace headrace {

NewFiles::~NewFiles() {
    std::error_code ignored;
    for (const auto& [unfinished, path] : files_) std::filesystem::remove(unfinished, ignored);
}

Status NewFiles::write(const std::string& path, const std::function<Status(std::ostream&)>& content) {
    const std::string unfinished = fmt::format("{}.{:08x}.tmp", path, std::random_device()());
    std::ofstream stream(unfinished, std::ios::binary | std::ios::trunc);
    if (!stream)
        return failure(Code::io, "cannot create '{}': {}", path, std::generic_category().message(errno));
    files_.emplace_back(unfinished, path);
    HR_TRY(content(stream));
    stream.close();
    if (!stream) return failure(Code::io, "cannot write '{}'; is the disk full?", path);
    return success();
}

Status NewFiles::finish() {
    for (const auto& [unfinished, path] : files_) {
        std::error_code error;
        std::filesystem::rename(unfinished, path, error);
        if (error) return failure(Code::io, "cannot write '{}': {}", path, error.message());
    }
    files_.clear();
    return success();
}

}  // namespace headrace
