#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/aligned_buffer.h"
#include "base/result.h"

namespace headrace {

/// The bytes of a file, read-only: its pages where the system maps files, else a copy in memory.
/// The file must not be shortened while it is open here: reading pages that are gone kills the process
/// (SIGBUS).
class MappedFile {
public:
    /// Errors: Code::io when the path is not a regular file that can be read.
    static Result<std::shared_ptr<const MappedFile>> open(const std::string& path);
    /// Maps a file that was opened already, where the system has descriptors; closes it. path: for messages.
    static Result<std::shared_ptr<const MappedFile>> of_descriptor(int descriptor, const std::string& path);

    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    ~MappedFile();

    /// Starts at a 64-byte boundary at least.
    std::span<const std::byte> bytes() const { return {data_, size_}; }
    bool is_mapped() const { return is_mapped_; }

private:
    /// Takes over a mapping of `size` bytes at `data`.
    MappedFile(const std::byte* data, std::size_t size);
    explicit MappedFile(AlignedBuffer copy)
        : copy_(std::move(copy)), data_(copy_.data()), size_(copy_.bytes()) {}

    static Result<std::shared_ptr<const MappedFile>> read(const std::string& path);

    AlignedBuffer copy_;
    const std::byte* data_;
    std::size_t size_;
    bool is_mapped_ = false;
};

}  // namespace headrace
