#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "llm/blocks/block_key.h"

namespace headrace::llm {

/// What a folder of blocks holds, and what of it goes when there is no room: without files, threads or a
/// clock. The block that was used least recently goes first, and of those that were used at the same time
/// the one that is furthest from its text's start: without the blocks before it a block is never found.
class BlockIndex {
public:
    /// used: any count that grows with the time. A block that is there already is replaced.
    void add(const BlockKey& key, std::uint64_t bytes, std::int64_t used);
    void remove(const BlockKey& key);
    /// Bytes that are taken and can not be freed, such as those of a block that is being written.
    void add_fixed(std::uint64_t bytes) { bytes_ += bytes; }

    /// Whether that many more bytes can be had within the limit; then what has to go for them is taken out
    /// and added to `gone`. Some more go than must, so that the next blocks find room, too.
    bool make_room(std::uint64_t bytes, std::uint64_t limit, std::vector<BlockKey>& gone);

    std::uint64_t bytes() const { return bytes_; }
    std::size_t size() const { return blocks_.size(); }
    bool holds(const BlockKey& key) const { return blocks_.contains(key); }

private:
    struct Block {
        std::uint64_t bytes;
        std::int64_t used;
    };
    std::map<BlockKey, Block> blocks_;
    std::uint64_t bytes_ = 0, removable_ = 0;
};

}  // namespace headrace::llm
