#include "plan/packed_file.h"

#include <algorithm>
#include <cstring>
#include <ostream>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/new_files.h"

namespace headrace {
namespace {

constexpr std::array<char, 8> kMagic{'H', 'R', 'P', 'A', 'C', 'K', 'E', 'D'};
constexpr std::uint32_t kFormat = 1;

std::uint64_t aligned(std::uint64_t n) {
    return (n + kPackedAlignment - 1) / kPackedAlignment * kPackedAlignment;
}

std::array<char, 48> machine_text(const std::string& machine) {
    std::array<char, 48> text{};
    std::copy_n(machine.data(), std::min(machine.size(), text.size() - 1), text.data());
    return text;
}

std::string_view view_of(const std::array<char, 48>& text) {
    return {text.data(), static_cast<std::size_t>(std::find(text.begin(), text.end(), 0) - text.begin())};
}

Status check_header(const PackedFileHeader& header, std::span<const std::byte> bytes,
                    const PackedFileKey& key) {
    if (header.magic != kMagic) return invalid("it is no file of packed weights");
    if (header.format != kFormat)
        return invalid("it has format {}; this version reads {}", header.format, kFormat);
    if (header.bytes != bytes.size())
        return invalid("it has {} bytes and should have {}", bytes.size(), header.bytes);
    const std::size_t room = (bytes.size() - sizeof(header)) / sizeof(PackedFileEntry);
    if (header.entries > room) return invalid("it has no room for its {} entries", header.entries);
    const auto entries = bytes.subspan(sizeof(header), header.entries * sizeof(PackedFileEntry));
    if (checksum_of(header, entries) != header.checksum)
        return invalid("the checksum of its header is wrong");
    if (header.machine != machine_text(key.machine))
        return invalid("it is for '{}', this is '{}'", view_of(header.machine), key.machine);
    if (header.model != key.model) return invalid("it is another model's");
    return success();
}

}  // namespace

ContentHash checksum_of(PackedFileHeader header, std::span<const std::byte> entries) {
    header.checksum = {};
    std::vector<std::byte> both(sizeof(header) + entries.size());
    std::memcpy(both.data(), &header, sizeof(header));
    if (!entries.empty()) std::memcpy(both.data() + sizeof(header), entries.data(), entries.size());
    return content_hash(both.data(), both.size());
}

Result<std::shared_ptr<const PackedFile>> PackedFile::open(const std::string& path,
                                                           const PackedFileKey& key) {
    HR_ASSIGN(auto file, MappedFile::open(path));
    const auto bytes = file->bytes();
    return read(bytes, std::move(file), key);
}

Result<std::shared_ptr<const PackedFile>> PackedFile::read(std::span<const std::byte> bytes,
                                                           std::shared_ptr<const void> owner,
                                                           const PackedFileKey& key) {
    PackedFileHeader header;
    if (bytes.size() < sizeof(header))
        return invalid("it has {} bytes, less than its header of {}", bytes.size(), sizeof(header));
    std::memcpy(&header, bytes.data(), sizeof(header));
    HR_TRY(check_header(header, bytes, key));
    auto file = std::make_shared<PackedFile>();
    const std::uint64_t table_end = sizeof(header) + header.entries * sizeof(PackedFileEntry);
    for (std::uint32_t i = 0; i < header.entries; ++i) {
        PackedFileEntry entry;
        std::memcpy(&entry, bytes.data() + sizeof(header) + i * sizeof(entry), sizeof(entry));
        if (entry.offset % kPackedAlignment != 0 || entry.offset < table_end || entry.offset > bytes.size() ||
            entry.bytes > bytes.size() - entry.offset)
            return invalid("its entry {} lies at {} and takes {} of {} bytes", i, entry.offset, entry.bytes,
                           bytes.size());
        file->entries_.emplace(entry.use, entry);
    }
    file->bytes_ = bytes;
    file->owner_ = std::move(owner);
    return std::shared_ptr<const PackedFile>(std::move(file));
}

Result<std::optional<std::span<const std::byte>>> PackedFile::find(const ContentHash& use,
                                                                   std::size_t bytes) const {
    const auto it = entries_.find(use);
    if (it == entries_.end()) return std::optional<std::span<const std::byte>>();
    const PackedFileEntry& entry = it->second;
    if (entry.bytes != bytes)
        return invalid("an entry takes {} bytes and should take {}", entry.bytes, bytes);
    const auto form = bytes_.subspan(entry.offset, entry.bytes);
    if (content_hash(form.data(), form.size()) != entry.checksum)
        return invalid("the checksum of the {} bytes at {} is wrong", entry.bytes, entry.offset);
    return std::optional(form);
}

Status write_packed_file(const std::string& path, const PackedFileKey& key,
                         const std::map<ContentHash, std::span<const std::byte>>& forms) {
    std::vector<PackedFileEntry> entries;
    std::uint64_t end = sizeof(PackedFileHeader) + forms.size() * sizeof(PackedFileEntry);
    for (const auto& [use, form] : forms) {
        const std::uint64_t offset = aligned(end);
        entries.push_back({.use = use,
                           .offset = offset,
                           .bytes = form.size(),
                           .checksum = content_hash(form.data(), form.size())});
        end = offset + form.size();
    }
    PackedFileHeader header{.magic = kMagic,
                            .format = kFormat,
                            .entries = static_cast<std::uint32_t>(entries.size()),
                            .bytes = end,
                            .model = key.model,
                            .machine = machine_text(key.machine)};
    header.checksum = checksum_of(header, std::as_bytes(std::span(entries)));
    NewFiles files;
    HR_TRY(files.write(path, [&](std::ostream& stream) {
        std::uint64_t at = 0;
        const auto put = [&](const void* data, std::size_t bytes) {
            stream.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
            at += bytes;
        };
        put(&header, sizeof(header));
        put(entries.data(), entries.size() * sizeof(PackedFileEntry));
        for (const auto& [use, form] : forms) {
            constexpr std::array<char, kPackedAlignment> kZeros{};
            put(kZeros.data(), aligned(at) - at);
            put(form.data(), form.size());
        }
        return success();
    }));
    return files.finish();
}

}  // namespace headrace
