#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "llm/blocks/block_key.h"

namespace headrace::llm {

/// A block as its file has it: a header, all tokens of its text up to its end, and llama.cpp's state of the
/// block's own. The tokens are compared when it is read: what a hash says alike need not be.
struct StoredBlock {
    std::span<const std::byte> state;
    double compute_ms = 0;  ///< what computing it took where it was written; 0 where that is not known
};

/// What stands in a file before a block's state.
std::vector<std::byte> block_head(const BlockOrigin& origin, std::span<const std::int32_t> tokens,
                                  const StoredBlock& block);

/// Bytes of a file that says so in its first kBlockHeaderBytes; 0 where these are of no block.
constexpr std::size_t kBlockHeaderBytes = 96;
std::uint64_t block_file_size(std::span<const std::byte> beginning);

/// The block that the bytes of a file hold, in which its state lies. Errors: it is cut off or damaged, or of
/// another origin or text.
Result<StoredBlock> read_block(std::span<const std::byte> file, const BlockOrigin& origin,
                               std::span<const std::int32_t> tokens);

}  // namespace headrace::llm
