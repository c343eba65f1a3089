#include "llm/blocks/block_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace headrace::llm {
namespace {

BlockKey key(std::uint64_t number, std::uint32_t index = 0) { return {{number, 0}, index}; }

std::vector<BlockKey> gone_for(BlockIndex& index, std::uint64_t bytes, std::uint64_t limit) {
    std::vector<BlockKey> gone;
    EXPECT_TRUE(index.make_room(bytes, limit, gone));
    return gone;
}

TEST(BlockIndexRoom, IsTakenFromWhatWasUsedLeastRecently) {
    BlockIndex index;
    for (std::uint64_t i = 0; i < 4; ++i) index.add(key(i), 10, static_cast<std::int64_t>(i));
    index.add(key(0), 10, 9);
    EXPECT_TRUE(gone_for(index, 10, 50).empty());
    EXPECT_EQ(gone_for(index, 10, 43), std::vector{key(1)});
    EXPECT_EQ(index.bytes(), 30u);
    EXPECT_FALSE(index.holds(key(1)));
}

TEST(BlockIndexRoom, IsTakenFromTextsEndsFirst) {
    BlockIndex index;
    for (std::uint32_t i = 0; i < 4; ++i) index.add(key(i, i), 10, 5);
    EXPECT_EQ(gone_for(index, 10, 43), std::vector{key(3, 3)});
}

TEST(BlockIndexRoom, IsMadeForABitMoreThanIsAskedFor) {
    BlockIndex index;
    for (std::uint64_t i = 0; i < 100; ++i) index.add(key(i), 10, static_cast<std::int64_t>(i));
    EXPECT_EQ(gone_for(index, 10, 1000).size(), 8u) << "a sixteenth of the limit, and the block";
}

TEST(BlockIndexRoom, IsMadeForNoBlockMoreThanThat) {
    BlockIndex index;
    for (std::uint64_t i = 0; i < 16; ++i) index.add(key(i), 10, static_cast<std::int64_t>(i));
    EXPECT_EQ(gone_for(index, 10, 160).size(), 2u) << "a sixteenth is one block";
}

TEST(BlockIndexRoom, IsNotThereForWhatNeverFits) {
    BlockIndex index;
    index.add(key(1), 10, 1);
    index.add_fixed(50);
    std::vector<BlockKey> gone;
    EXPECT_FALSE(index.make_room(101, 100, gone));
    EXPECT_FALSE(index.make_room(51, 100, gone)) << "what is being written stays";
    EXPECT_TRUE(gone.empty());
    EXPECT_TRUE(index.make_room(50, 100, gone));
    EXPECT_EQ(gone, std::vector{key(1)});
}

/// Random histories beside a list that is searched anew each time.
TEST(BlockIndexHistories, HoldTheLimitAndTheOrder) {
    struct Known {
        BlockKey key;
        std::uint64_t bytes;
        std::int64_t used;
    };
    for (std::uint32_t seed = 0; seed < 200; ++seed) {
        std::mt19937 random(seed);
        BlockIndex index;
        std::vector<Known> known;
        std::uint64_t fixed = 0;
        const std::uint64_t limit = 100 + random() % 2000;
        const auto total = [&] {
            std::uint64_t bytes = fixed;
            for (const Known& one : known) bytes += one.bytes;
            return bytes;
        };
        for (int step = 0; step < 200; ++step) {
            const BlockKey at = key(random() % 40, random() % 3);
            const std::uint64_t bytes = 1 + random() % 150;
            const auto same = [&](const Known& one) { return one.key == at; };
            if (random() % 8 == 0) {
                index.remove(at);
                std::erase_if(known, same);
            } else if (random() % 50 == 0 && fixed + bytes < limit / 2) {
                std::vector<BlockKey> gone;
                if (!index.make_room(bytes, limit, gone)) continue;
                std::erase_if(known, [&](const Known& one) { return std::ranges::count(gone, one.key) > 0; });
                index.add_fixed(bytes);
                fixed += bytes;
            } else {
                std::vector<BlockKey> gone;
                index.remove(at);
                std::erase_if(known, same);
                const bool fits = index.make_room(bytes, limit, gone);
                ASSERT_EQ(fits, fixed + bytes <= limit);
                std::vector<Known> left = known;
                std::erase_if(left, [&](const Known& one) { return std::ranges::count(gone, one.key) > 0; });
                ASSERT_EQ(left.size() + gone.size(), known.size()) << "only what is there goes, and once";
                for (const Known& one : known) {
                    if (!std::ranges::count(gone, one.key)) continue;
                    for (const Known& other : left) {
                        ASSERT_TRUE(one.used < other.used ||
                                    (one.used == other.used && one.key.index >= other.key.index))
                            << "seed " << seed;
                    }
                }
                known = left;
                if (!fits) continue;
                const auto used = static_cast<std::int64_t>(step / 4);
                index.add(at, bytes, used);
                known.push_back({at, bytes, used});
            }
            ASSERT_EQ(index.bytes(), total()) << "seed " << seed;
            ASSERT_EQ(index.size(), known.size());
            ASSERT_LE(index.bytes(), limit);
        }
    }
}

}  // namespace
}  // namespace headrace::llm
