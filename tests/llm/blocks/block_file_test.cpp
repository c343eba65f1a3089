#include "llm/blocks/block_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "fuzz/block_file_target.h"
#include "fuzz/fuzz.h"

namespace headrace::llm {
namespace {

const BlockOrigin kOrigin{.model = {1, 2}, .variant = 3, .size = 2};
const std::vector<std::int32_t> kTokens = {5, 6, 7, 8};

std::vector<std::byte> file_of(const std::string& state, double compute_ms = 12.5) {
    const StoredBlock block{std::as_bytes(std::span(state)), compute_ms};
    std::vector<std::byte> file = block_head(kOrigin, kTokens, block);
    file.insert(file.end(), block.state.begin(), block.state.end());
    return file;
}

std::string text_of(std::span<const std::byte> state) {
    return {reinterpret_cast<const char*>(state.data()), state.size()};
}

TEST(BlockFile, HasWhatWasPutIn) {
    for (const std::string& state : {std::string(), std::string("x"), std::string(5000, 'y')}) {
        const auto file = file_of(state);
        EXPECT_EQ(block_file_size(file), file.size());
        const Result<StoredBlock> block = read_block(file, kOrigin, kTokens);
        ASSERT_TRUE(block.ok()) << block.error().message;
        EXPECT_EQ(text_of(block.value().state), state);
        EXPECT_EQ(block.value().compute_ms, 12.5);
    }
}

TEST(BlockFile, MayHaveNoTokens) {
    const std::vector<std::byte> file = block_head(kOrigin, {}, StoredBlock{});
    EXPECT_TRUE(read_block(file, kOrigin, {}).ok());
    EXPECT_FALSE(read_block(file, kOrigin, kTokens).ok());
}

TEST(BlockFile, IsRefusedWithAnyByteChanged) {
    const auto sound = file_of("a state of some bytes");
    for (std::size_t at = 0; at < sound.size(); ++at)
        for (const int bits : {1, 0x80, 0xff}) {
            auto file = sound;
            file[at] ^= static_cast<std::byte>(bits);
            EXPECT_FALSE(read_block(file, kOrigin, kTokens).ok()) << "byte " << at;
        }
}

TEST(BlockFile, IsRefusedWhenItIsCutOffOrContinued) {
    const auto sound = file_of("a state of some bytes");
    for (std::size_t size = 0; size < sound.size(); ++size)
        EXPECT_FALSE(read_block(std::span(sound).first(size), kOrigin, kTokens).ok()) << size;
    auto longer = sound;
    longer.push_back({});
    EXPECT_FALSE(read_block(longer, kOrigin, kTokens).ok());
}

TEST(BlockFile, IsRefusedForAnotherTextOrOrigin) {
    const auto file = file_of("state");
    EXPECT_FALSE(read_block(file, kOrigin, std::vector<std::int32_t>{5, 6, 7, 9}).ok());
    EXPECT_FALSE(read_block(file, kOrigin, std::vector<std::int32_t>{5, 6}).ok());
    for (const BlockOrigin& other : {BlockOrigin{{1, 9}, 3, 2}, BlockOrigin{{9, 2}, 3, 2},
                                     BlockOrigin{{1, 2}, 9, 2}, BlockOrigin{{1, 2}, 3, 4}})
        EXPECT_FALSE(read_block(file, other, kTokens).ok());
}

TEST(BlockFile, SaysWhatItsSizeMustBeBeforeItIsRead) {
    auto file = file_of(std::string(100, 'z'));
    EXPECT_EQ(block_file_size(std::span(file).first(kBlockHeaderBytes)), file.size());
    EXPECT_EQ(block_file_size(std::span(file).first(kBlockHeaderBytes - 1)), 0u);
    std::memset(file.data(), 0, 8);
    EXPECT_EQ(block_file_size(file), 0u);
}

TEST(BlockFile, WithstandsRandomDamage) {
    const fuzz::Outcome outcome = fuzz::fuzz_for(fuzz::block_file_target(), 1, 2);
    EXPECT_GT(outcome.iterations, 1000u);
    EXPECT_GT(outcome.accepted, 0u);
}

}  // namespace
}  // namespace headrace::llm
