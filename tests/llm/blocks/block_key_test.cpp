#include "llm/blocks/block_key.h"

#include <gtest/gtest.h>

#include <numeric>

namespace headrace::llm {
namespace {

std::vector<std::int32_t> count_up(std::size_t size) {
    std::vector<std::int32_t> tokens(size);
    std::iota(tokens.begin(), tokens.end(), 0);
    return tokens;
}

const BlockOrigin kKeyOrigin{.model = {1, 2}, .variant = 3, .size = 8};

TEST(BlockKeys, AreOfWholeBlocksOnly) {
    EXPECT_EQ(block_keys(kKeyOrigin, count_up(7)).size(), 0u);
    EXPECT_EQ(block_keys(kKeyOrigin, count_up(8)).size(), 1u);
    EXPECT_EQ(block_keys(kKeyOrigin, count_up(31)).size(), 3u);
    EXPECT_TRUE(block_keys({}, count_up(31)).empty());
}

TEST(BlockKeys, AreSharedByTextsThatBeginAlike) {
    std::vector<std::int32_t> one = count_up(32), other = count_up(40);
    other[17] = 999;
    const auto a = block_keys(kKeyOrigin, one), b = block_keys(kKeyOrigin, other);
    EXPECT_EQ(a[0], b[0]);
    EXPECT_EQ(a[1], b[1]);
    EXPECT_NE(a[2], b[2]);
    EXPECT_NE(a[3], b[3]) << "the tokens of the block are the same, and those before it are not";
}

TEST(BlockKeys, DependOnAllOfTheOrigin) {
    const auto tokens = count_up(16);
    const BlockKey key = block_keys(kKeyOrigin, tokens)[0];
    for (const BlockOrigin& other : {BlockOrigin{{9, 2}, 3, 8}, BlockOrigin{{1, 9}, 3, 8},
                                     BlockOrigin{{1, 2}, 9, 8}, BlockOrigin{{1, 2}, 3, 16}})
        EXPECT_NE(block_keys(other, tokens)[0], key);
}

TEST(BlockKeys, AreReadBackFromNamesOfFiles) {
    for (const BlockKey& key : block_keys(kKeyOrigin, count_up(80)))
        EXPECT_EQ(key_of_file(file_name(key)), key);
    const std::string name = file_name({{0xabc, 0x123}, 7});
    for (const std::string& other :
         {std::string(), std::string("lock"), name + ".1234.tmp", name.substr(1), "x" + name.substr(1),
          "A" + name.substr(1), std::string(name.size(), '0'), name.substr(0, name.size() - 1) + "w"})
        EXPECT_FALSE(key_of_file(other)) << other;
}

}  // namespace
}  // namespace headrace::llm
