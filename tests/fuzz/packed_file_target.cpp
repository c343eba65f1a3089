#include "fuzz/packed_file_target.h"

#include <cstring>
#include <stdexcept>

#include "base/aligned_buffer.h"
#include "fuzz/mutate.h"
#include "plan/packed_file.h"
#include "temporary_folder.h"

namespace headrace::fuzz {
namespace {

const PackedFileKey kKey{{1, 2}, "fuzz"};
constexpr std::size_t kLargest = 1000;

ContentHash use_of(std::size_t bytes) { return {bytes, 7}; }

/// Forms of the bytes that are their size, so that what find() returns can be checked.
std::string file_with(std::initializer_list<std::size_t> sizes) {
    std::map<ContentHash, std::string> contents;
    std::map<ContentHash, std::span<const std::byte>> forms;
    for (const std::size_t size : sizes) {
        auto& content = contents[use_of(size)] = std::string(size, static_cast<char>(size));
        forms[use_of(size)] = std::as_bytes(std::span(content));
    }
    const TemporaryFolder folder;
    const std::string path = folder / "weights.packed";
    if (const Status written = write_packed_file(path, kKey, forms); !written.ok())
        throw std::runtime_error(written.error().message);
    return folder.read("weights.packed");
}

/// A header that was damaged and has a right checksum all the same: what is beyond it is looked at then.
void seal(std::string& file) {
    PackedFileHeader header;
    if (file.size() < sizeof(header)) return;
    std::memcpy(&header, file.data(), sizeof(header));
    header.bytes = file.size();
    const std::size_t most = (file.size() - sizeof(header)) / sizeof(PackedFileEntry);
    if (header.entries > most) header.entries = static_cast<std::uint32_t>(most);
    const auto rest = std::as_bytes(std::span(file)).subspan(sizeof(header));
    header.checksum = checksum_of(header, rest.first(header.entries * sizeof(PackedFileEntry)));
    std::memcpy(file.data(), &header, sizeof(header));
}

bool load(const Parts& parts) {
    const std::string& content = parts[0];
    auto copy = std::make_shared<AlignedBuffer>(AlignedBuffer::allocate(content.size(), "a test").value());
    std::memcpy(copy->data(), content.data(), content.size());
    const auto file = PackedFile::read({copy->data(), content.size()}, copy, kKey);
    if (!file.ok()) {
        if (file.error().message.empty()) throw std::logic_error("an error without a message");
        return false;
    }
    bool is_whole = true;
    for (std::size_t bytes = 0; bytes <= kLargest; ++bytes) {
        const auto form = file.value()->find(use_of(bytes), bytes);
        is_whole = is_whole && form.ok();
        if (!form.ok() || !form.value()) continue;
        for (const std::byte b : *form.value())
            if (b != static_cast<std::byte>(bytes)) throw std::logic_error("damaged weights were accepted");
    }
    return is_whole;
}

}  // namespace

Target packed_file_target() {
    Target target{"packed", {}, {"HRPACKED"}, load};
    for (const auto& sizes : {std::initializer_list<std::size_t>{}, {1}, {64, 100}, {3, 128, 500, kLargest}})
        target.corpus.push_back({file_with(sizes)});
    target.mutate = [corpus = target.corpus](const Parts& parts, Mutator& mutator) {
        std::string file =
            mutator.mutate(parts[0], corpus[mutator.below(corpus.size())][0], {"HRPACKED", "fuzz"});
        if (mutator.below(3) > 0) seal(file);
        return Parts{std::move(file)};
    };
    return target;
}

}  // namespace headrace::fuzz
