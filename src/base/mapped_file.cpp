#include "base/mapped_file.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/file_pages.h"

#if __has_include(<sys/mman.h>)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#define HEADRACE_HAS_MMAP 1
#elif defined(_WIN32)
#define NOMINMAX
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#endif

namespace headrace {
namespace {

Error cannot_read(const std::string& path, int error) {
    return failure(Code::io, "cannot read '{}': {}", path, std::generic_category().message(error));
}

/// Paths are UTF-8; Windows would take their bytes for the system's own code page.
std::filesystem::path native(const std::string& path) {
    return std::filesystem::path(std::u8string(path.begin(), path.end()));
}

}  // namespace

#ifdef HEADRACE_HAS_MMAP

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
    // A FIFO would block in open until someone writes to it; it is refused below all the same.
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return cannot_read(path, errno);
    return of_descriptor(descriptor, path);
}

Result<std::shared_ptr<const MappedFile>> MappedFile::of_descriptor(int descriptor, const std::string& path) {
    struct stat status {};
    const bool is_file = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
    const auto size = static_cast<std::size_t>(status.st_size);
    void* data = MAP_FAILED;
    if (is_file && size > 0) data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    const int error = errno;
    auto file = [&]() -> Result<std::shared_ptr<const MappedFile>> {
        if (!is_file) return failure(Code::io, "cannot read '{}': it is not a regular file", path);
        if (data != MAP_FAILED)
            return std::shared_ptr<const MappedFile>(
                new MappedFile(static_cast<const std::byte*>(data), size));
        // Some file systems cannot map; they can still be read. An empty file has nothing to map.
        if (size > 0 && error != ENODEV) return cannot_read(path, error);
        HR_ASSIGN(auto copy, AlignedBuffer::allocate(size, fmt::format("the content of '{}'", path)));
        for (std::size_t done = 0; done < size;) {
            const ssize_t part =
                ::pread(descriptor, copy.data() + done, size - done, static_cast<off_t>(done));
            if (part <= 0) return cannot_read(path, part < 0 ? errno : EIO);
            done += static_cast<std::size_t>(part);
        }
        return std::shared_ptr<const MappedFile>(new MappedFile(std::move(copy)));
    }();
    ::close(descriptor);
    return file;
}

#elif defined(_WIN32)

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
    // What cannot be mapped can often be read, and read() words the errors.
    const HANDLE file = ::CreateFileW(native(path).c_str(), GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_DELETE,
                                      nullptr, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, nullptr);
    if (file == INVALID_HANDLE_VALUE) return read(path);
    LARGE_INTEGER size{};
    const bool is_file = ::GetFileType(file) == FILE_TYPE_DISK && ::GetFileSizeEx(file, &size);
    HANDLE mapping = nullptr;  // an empty file has none
    if (is_file) mapping = ::CreateFileMappingW(file, nullptr, PAGE_READONLY, 0, 0, nullptr);
    ::CloseHandle(file);
    if (!mapping) return read(path);
    const void* data = ::MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0);
    ::CloseHandle(mapping);  // the view keeps it
    if (!data) return read(path);
    return std::shared_ptr<const MappedFile>(
        new MappedFile(static_cast<const std::byte*>(data), static_cast<std::size_t>(size.QuadPart)));
}

#else

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) { return read(path); }

#endif

Result<std::shared_ptr<const MappedFile>> MappedFile::read(const std::string& path) {
    std::error_code error;
    const std::filesystem::path file = native(path);
    if (!std::filesystem::is_regular_file(file, error))
        return failure(Code::io, "cannot read '{}': {}", path,
                       error ? error.message() : "it is not a regular file");
    const std::size_t size = std::filesystem::file_size(file, error);
    std::ifstream stream(file, std::ios::binary);
    if (error || !stream) return cannot_read(path, error ? error.value() : errno);
    HR_ASSIGN(auto copy, AlignedBuffer::allocate(size, fmt::format("the content of '{}'", path)));
    if (!stream.read(reinterpret_cast<char*>(copy.data()), static_cast<std::streamsize>(size)))
        return failure(Code::io, "cannot read '{}': it ended early", path);
    return std::shared_ptr<const MappedFile>(new MappedFile(std::move(copy)));
}

MappedFile::MappedFile(const std::byte* data, std::size_t size) : data_(data), size_(size), is_mapped_(true) {
    FilePages::add(bytes());
}

MappedFile::~MappedFile() {
    if (is_mapped_) FilePages::remove(bytes());
#ifdef HEADRACE_HAS_MMAP
    if (is_mapped_) ::munmap(const_cast<std::byte*>(data_), size_);
#elif defined(_WIN32)
    if (is_mapped_) ::UnmapViewOfFile(data_);
#endif
}

}  // namespace headrace
