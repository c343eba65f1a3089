#include "doors/onnx/model/external.h"

#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#if __has_include(<unistd.h>)
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#define HEADRACE_HAS_OPENAT 1
#endif

namespace headrace::onnx {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kRemedy = "copy the file itself beside the model";

fs::path native(const std::string& path) { return fs::path(std::u8string(path.begin(), path.end())); }

std::string text(const fs::path& path) {
    const std::u8string utf8 = path.u8string();
    return {utf8.begin(), utf8.end()};
}

/// A path's parts; none for one that does not lead down from a folder.
std::vector<fs::path> parts_of(const fs::path& location) {
    std::vector<fs::path> parts;
    if (location.is_absolute() || location.has_root_path()) return {};
    for (const fs::path& part : location) {
        if (part == "..") return {};
        if (!part.empty() && part != ".") parts.push_back(part);
    }
    return parts;
}

fs::path joined(fs::path folder, const std::vector<fs::path>& parts) {
    for (const fs::path& part : parts) folder /= part;
    return folder;
}

/// For models--org--name/snapshots/<revision>/... the folder of its contents, models--org--name/blobs.
std::optional<fs::path> blobs_of(const fs::path& folder) {
    for (fs::path at = folder.parent_path(); at.has_relative_path(); at = at.parent_path())
        if (at.filename() == "snapshots" && text(at.parent_path().filename()).starts_with("models--"))
            return at.parent_path() / "blobs";
    return std::nullopt;
}

bool lies_in(const fs::path& path, const fs::path& folder) {
    auto at = path.begin();
    for (const fs::path& part : folder) {
        if (at == path.end() || *at != part) return false;
        ++at;
    }
    return at != path.end();
}

Error several_names(const fs::path& path, std::uintmax_t names) {
    return invalid(
        "its data is in {}, a file with {} names (hard links), and others may lie outside the model's "
        "folder; {}",
        text(path), names, kRemedy);
}

#ifdef HEADRACE_HAS_OPENAT

class Descriptor {
public:
    explicit Descriptor(int number) : number_(number) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() { become(-1); }
    int number() const { return number_; }
    void become(int number) {
        if (number_ >= 0) ::close(number_);
        number_ = number;
    }
    int release() { return std::exchange(number_, -1); }

private:
    int number_;
};

Error cannot_open(const fs::path& path) {
    return failure(Code::io, "its data is in {}, which cannot be read: {}", text(path),
                   std::generic_category().message(errno));
}

/// Returns when no name in the folder is being changed: its names are listed under the lock of changes. While
/// one is replaced, it leads to a file that has one name fewer already.
void wait_for_changes(int folder) {
    const int own = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (own < 0) return;
    DIR* names = ::fdopendir(own);
    if (!names) return void(::close(own));
    ::readdir(names);
    ::closedir(names);
}

/// Whether the name still leads to what was opened, which must have no other.
Status check_names(int folder, const char* name, const struct stat& opened, const fs::path& path) {
    struct stat named {};
    if (::fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) != 0) return cannot_open(path);
    if (named.st_dev != opened.st_dev || named.st_ino != opened.st_ino)
        return failure(Code::io,
                       "its data is in {}, which was replaced while it was opened; load the model again",
                       text(path));
    if (named.st_nlink > 1) return several_names(path, named.st_nlink);
    return success();
}

/// root/parts, mapped. No part may be a link, whatever has happened since the names were read.
Result<std::shared_ptr<const MappedFile>> open_checked(const fs::path& path, const fs::path& root,
                                                       const std::vector<fs::path>& parts) {
    constexpr int kKept = O_RDONLY | O_NOFOLLOW | O_CLOEXEC;
    Descriptor at(::open(root.c_str(), kKept | O_DIRECTORY));
    for (std::size_t i = 0; i + 1 < parts.size() && at.number() >= 0; ++i)
        at.become(::openat(at.number(), parts[i].c_str(), kKept | O_DIRECTORY));
    if (at.number() < 0) return cannot_open(path);
    const char* name = parts.back().c_str();
    Descriptor file(::openat(at.number(), name, kKept | O_NONBLOCK));  // a pipe would keep waiting
    struct stat opened {};
    if (file.number() < 0 || ::fstat(file.number(), &opened) != 0) return cannot_open(path);
    if (!S_ISREG(opened.st_mode))
        return invalid("its data is in {}, which is no regular file; put one there", text(path));
    // The opened file may have lost this name by now, and one outside may be the only one left. So names
    // are counted where this one still leads to it.
    HR_TRY(check_names(at.number(), name, opened, path));
    wait_for_changes(at.number());
    HR_TRY(check_names(at.number(), name, opened, path));
    return MappedFile::of_descriptor(file.release(), text(path));
}

#else

Result<std::shared_ptr<const MappedFile>> open_checked(const fs::path& path, const fs::path& root,
                                                       const std::vector<fs::path>& parts) {
    const fs::path whole = joined(root, parts);
    std::error_code error;
    if (const auto names = fs::hard_link_count(whole, error); !error && names > 1)
        return several_names(path, names);
    return MappedFile::open(text(whole));
}

#endif

}  // namespace

Result<std::shared_ptr<const MappedFile>> ExternalFiles::open(const std::string& location) const {
    if (folder_.empty())
        return invalid("its data is in the file '{}'; load the model from its path", location);
    if (location.find('\0') != std::string::npos) return invalid("the name of its data has a null byte");
    const std::vector<fs::path> parts = parts_of(native(location));
    if (parts.empty())
        return invalid(
            "its data is in '{}', which is not named from the model's folder on; save the model with its "
            "data "
            "beside it",
            location);
    std::error_code error;
    const fs::path folder = native(folder_), path = folder / native(location);
    const fs::path home = fs::weakly_canonical(folder, error), real = fs::weakly_canonical(path, error);
    const auto blobs = blobs_of(home);
    const bool is_own = real == joined(home, parts);
    if (!is_own && !(blobs && lies_in(real, *blobs)))
        return invalid("its data is in {}, a link to {}, which is not followed; {}", text(path), text(real),
                       kRemedy);
    if (!fs::exists(real, error))
        return invalid("its data is in {}, which does not exist; it belongs beside the model", text(path));
    if (!fs::is_regular_file(real, error))
        return invalid("its data is in {}, which is no regular file; put one there", text(path));
    const fs::path& root = is_own ? home : *blobs;
    return open_checked(path, root, parts_of(real.lexically_relative(root)));
}

Result<std::shared_ptr<const Constant>> ExternalFiles::map(const std::string& location, std::uint64_t offset,
                                                           std::size_t count) {
    auto& file = files_[location];
    if (!file) {
        HR_ASSIGN(file, open(location));
    }
    const auto all = file->bytes();
    if (count > all.size() || offset > all.size() - count)
        return invalid(
            "its {} bytes are said to be at {} of {}, which has {}; the file is cut off or belongs to "
            "another "
            "model",
            count, offset, text(native(folder_) / native(location)), all.size());
    return std::make_shared<const Constant>(
        Constant{.bytes = all.subspan(offset, count), .owner = file, .mapped = file->is_mapped()});
}

}  // namespace headrace::onnx
