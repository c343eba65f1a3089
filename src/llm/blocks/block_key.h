#pragma once
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/content_hash.h"

namespace headrace::llm {

/// What keys and values depend on besides the tokens that they are of.
struct BlockOrigin {
    ContentHash model;  ///< its weights and adapters, the versions that compute, the context's settings
    std::uint64_t variant = 0;  ///< of the request: see Sequences::acquire
    std::uint64_t size = 0;     ///< tokens of a block

    friend bool operator==(const BlockOrigin&, const BlockOrigin&) = default;
};

/// Names the keys and values of one block of a text. Those of a token depend on all tokens before it, so the
/// name does, too: texts that begin alike have their first blocks in common.
struct BlockKey {
    ContentHash hash;
    std::uint32_t index = 0;  ///< of the block in its text

    friend auto operator<=>(const BlockKey&, const BlockKey&) = default;
};

/// The keys of all whole blocks of these tokens, in order.
std::vector<BlockKey> block_keys(const BlockOrigin& origin, std::span<const std::int32_t> tokens);

/// The name of its file, and the block that a file of that name holds.
std::string file_name(const BlockKey& key);
std::optional<BlockKey> key_of_file(std::string_view name);

}  // namespace headrace::llm
