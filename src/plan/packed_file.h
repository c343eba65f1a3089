#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/content_hash.h"
#include "base/result.h"

namespace headrace {

/// What a file of packed weights holds the weights of, and who can read them.
struct PackedFileKey {
    ContentHash model;
    std::string machine;  ///< what the forms depend on: versions and instruction set; at most 47 bytes
};

/// A file of packed weights begins with this, in the machine's byte order. Entries follow, then their bytes,
/// each at a multiple of kPackedAlignment.
struct PackedFileHeader {
    std::array<char, 8> magic;
    std::uint32_t format = 0;
    std::uint32_t entries = 0;
    std::uint64_t bytes = 0;  ///< of the whole file
    ContentHash model;
    std::array<char, 48> machine;  ///< ended by zeros
    ContentHash checksum;          ///< of the header, with zeros in its place, and of the entries
    std::array<std::uint64_t, 3> padding{};
};
static_assert(sizeof(PackedFileHeader) == 128);

struct PackedFileEntry {
    ContentHash use;  ///< content, kernel, type and attributes
    std::uint64_t offset = 0, bytes = 0;
    ContentHash checksum;
    std::array<std::uint64_t, 2> padding{};
};
static_assert(sizeof(PackedFileEntry) == 64);

inline constexpr std::size_t kPackedAlignment = 64;

/// PackedFileHeader::checksum.
ContentHash checksum_of(PackedFileHeader header, std::span<const std::byte> entries);

/// A file of packed weights, mapped: processes that read it share its pages.
class PackedFile {
public:
    /// Errors: io when it cannot be read; invalid_argument when it is damaged, for another model or machine.
    static Result<std::shared_ptr<const PackedFile>> open(const std::string& path, const PackedFileKey& key);
    /// The same of bytes in memory, which `owner` keeps; they must begin at a multiple of kPackedAlignment.
    static Result<std::shared_ptr<const PackedFile>> read(std::span<const std::byte> bytes,
                                                          std::shared_ptr<const void> owner,
                                                          const PackedFileKey& key);

    /// The form for a use; nothing where the file has none. Reads all of it for the checksum, each time.
    /// Errors: it is damaged, or takes other than `bytes`.
    Result<std::optional<std::span<const std::byte>>> find(const ContentHash& use, std::size_t bytes) const;

private:
    std::span<const std::byte> bytes_;
    std::shared_ptr<const void> owner_;
    std::map<ContentHash, PackedFileEntry> entries_;
};

/// Writes a file under a name of its own beside `path` and puts it in the place of `path` when it is whole.
Status write_packed_file(const std::string& path, const PackedFileKey& key,
                         const std::map<ContentHash, std::span<const std::byte>>& forms);

}  // namespace headrace
