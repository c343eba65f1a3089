#include "llm/blocks/block_index.h"

#include <algorithm>
#include <tuple>

namespace headrace::llm {

void BlockIndex::add(const BlockKey& key, std::uint64_t bytes, std::int64_t used) {
    remove(key);
    blocks_[key] = {bytes, used};
    bytes_ += bytes;
    removable_ += bytes;
}

void BlockIndex::remove(const BlockKey& key) {
    const auto block = blocks_.find(key);
    if (block == blocks_.end()) return;
    bytes_ -= block->second.bytes;
    removable_ -= block->second.bytes;
    blocks_.erase(block);
}

bool BlockIndex::make_room(std::uint64_t bytes, std::uint64_t limit, std::vector<BlockKey>& gone) {
    constexpr std::uint64_t kSpareShare = 16;
    const std::uint64_t fixed = bytes_ - removable_;
    if (bytes > limit || fixed > limit - bytes) return false;
    const std::uint64_t most = limit - bytes;  // of what stays
    if (bytes_ <= most) return true;
    const std::uint64_t target = most - std::min(most, limit / kSpareShare);
    std::vector<std::tuple<std::int64_t, std::int64_t, BlockKey>> order;
    order.reserve(blocks_.size());
    for (const auto& [key, block] : blocks_)
        order.emplace_back(block.used, -static_cast<std::int64_t>(key.index), key);
    std::sort(order.begin(), order.end());
    for (const auto& [used, depth, key] : order) {
        if (bytes_ <= target) break;
        remove(key);
        gone.push_back(key);
    }
    return true;
}

}  // namespace headrace::llm
