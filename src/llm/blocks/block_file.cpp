#include "llm/blocks/block_file.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace headrace::llm {
namespace {

constexpr std::array<char, 8> kBlockMagic = {'H', 'R', 'B', 'L', 'O', 'C', 'K', '1'};
constexpr std::uint64_t kMostTokens = std::uint64_t{1} << 32;
constexpr std::uint64_t kMostStateBytes = std::uint64_t{1} << 40;

struct BlockHeader {
    std::array<char, 8> magic = kBlockMagic;
    ContentHash model;
    std::uint64_t variant = 0, size = 0, tokens = 0, state_bytes = 0;
    double compute_ms = 0;
    ContentHash state_hash;
    ContentHash head_hash;  // of what is before it, and of the tokens
};
static_assert(sizeof(BlockHeader) == kBlockHeaderBytes);

ContentHash head_hash(const BlockHeader& header, std::span<const std::byte> tokens) {
    const ContentHash parts[] = {content_hash(&header, offsetof(BlockHeader, head_hash)),
                                 content_hash(tokens.data(), tokens.size())};
    return content_hash(parts, sizeof(parts));
}

/// Where the state begins, behind the tokens.
std::uint64_t head_bytes(const BlockHeader& header) {
    return sizeof(header) + header.tokens * sizeof(std::int32_t);
}

}  // namespace

std::vector<std::byte> block_head(const BlockOrigin& origin, std::span<const std::int32_t> tokens,
                                  const StoredBlock& block) {
    BlockHeader header;
    header.model = origin.model;
    header.variant = origin.variant;
    header.size = origin.size;
    header.tokens = tokens.size();
    header.state_bytes = block.state.size();
    header.compute_ms = block.compute_ms;
    header.state_hash = content_hash(block.state.data(), block.state.size());
    const auto bytes = std::as_bytes(tokens);
    header.head_hash = head_hash(header, bytes);
    std::vector<std::byte> head(sizeof(header) + bytes.size());
    std::memcpy(head.data(), &header, sizeof(header));
    if (!bytes.empty()) std::memcpy(head.data() + sizeof(header), bytes.data(), bytes.size());
    return head;
}

std::uint64_t block_file_size(std::span<const std::byte> beginning) {
    BlockHeader header;
    if (beginning.size() < sizeof(header)) return 0;
    std::memcpy(&header, beginning.data(), sizeof(header));
    if (header.magic != kBlockMagic || header.tokens > kMostTokens || header.state_bytes > kMostStateBytes)
        return 0;
    return head_bytes(header) + header.state_bytes;
}

Result<StoredBlock> read_block(std::span<const std::byte> file, const BlockOrigin& origin,
                               std::span<const std::int32_t> tokens) {
    if (block_file_size(file) == 0) return invalid("it is no file of a block");
    if (block_file_size(file) != file.size()) return invalid("it is cut off");
    BlockHeader header;
    std::memcpy(&header, file.data(), sizeof(header));
    const auto head = static_cast<std::size_t>(head_bytes(header));
    const auto own = file.subspan(sizeof(header), head - sizeof(header));
    if (head_hash(header, own) != header.head_hash) return invalid("its header is damaged");
    const auto asked = std::as_bytes(tokens);
    const BlockOrigin is_of{header.model, header.variant, header.size};
    if (is_of != origin || !std::ranges::equal(own, asked))
        return invalid("it is of another model, other settings or another text");
    const auto state = file.subspan(head);
    if (content_hash(state.data(), state.size()) != header.state_hash)
        return invalid("its checksum is another");
    return StoredBlock{state, header.compute_ms};
}

}  // namespace headrace::llm
