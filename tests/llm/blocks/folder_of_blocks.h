#pragma once
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "llm/blocks/block_folder.h"
#include "llm/blocks/folder_ledger.h"
#include "temporary_folder.h"

namespace headrace::llm {

/// Blocks of made-up texts, whose states follow from their keys, so that what is read can be checked.
struct TestText {
    static constexpr std::size_t kSize = 4;  ///< tokens of a block

    BlockOrigin origin{.model = {1, 2}, .variant = 0, .size = kSize};
    std::vector<std::int32_t> tokens;
    std::vector<BlockKey> keys;

    /// Texts of one stem have their first half in common.
    TestText(int number, std::size_t blocks, int stem = 0) {
        for (std::size_t i = 0; i < blocks * kSize; ++i)
            tokens.push_back(i < blocks / 2 * kSize ? stem * 1000 : number);
        keys = block_keys(origin, tokens);
    }
    std::span<const std::int32_t> tokens_to(std::size_t index) const {
        return std::span(tokens).first((index + 1) * kSize);
    }
    static std::vector<std::byte> state(const BlockKey& key) {
        std::vector<std::byte> bytes(200 + key.hash.low % 800);
        for (std::size_t i = 0; i < bytes.size(); ++i)
            bytes[i] = static_cast<std::byte>(key.hash.high >> (i % 8 * 8));
        return bytes;
    }
    Status write(BlockFolder& folder, std::size_t index) const {
        const auto bytes = state(keys[index]);
        return folder.write(std::span(keys).first(index + 1), origin, tokens_to(index), {bytes, 1});
    }
    Result<BlockFolder::Block> read(const BlockFolder& folder, std::size_t index) const {
        return folder.read(keys[index], origin, tokens_to(index));
    }
    static bool is_right(const BlockFolder::Block& block, const BlockKey& key) {
        const auto expected = state(key);
        return block.stored.state.size() == expected.size() &&
               std::memcmp(block.stored.state.data(), expected.data(), expected.size()) == 0;
    }
    /// Whether the block is not there, or has just what was written.
    bool is_sound(const BlockFolder& folder, std::size_t index) const {
        const Result<BlockFolder::Block> block = read(folder, index);
        return block.ok() ? is_right(block.value(), keys[index]) : block.error().code == Code::not_found;
    }
};

/// Bytes of all blocks of a folder, also of those that are being written. The folder must not change
/// meanwhile.
inline std::uint64_t bytes_of_blocks(const std::string& folder) {
    const auto lock = FolderLedger::lock(folder, std::chrono::seconds(20));
    if (!lock.ok()) return 0;
    std::map<ino_t, std::uint64_t> sizes;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
        const std::string name = entry.path().filename();
        struct stat file {};
        if ((name.find(".kv") != name.npos) && stat(entry.path().c_str(), &file) == 0)
            sizes[file.st_ino] = static_cast<std::uint64_t>(file.st_size);
    }
    std::uint64_t bytes = 0;
    for (const auto& [inode, size] : sizes) bytes += size;
    return bytes;
}

inline std::size_t files_ending(const std::string& folder, std::string_view ending) {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
        count += entry.path().string().ends_with(ending);
    return count;
}

}  // namespace headrace::llm
