#include "llm/blocks/block_key.h"

#include <fmt/format.h>

#include <charconv>

namespace headrace::llm {
namespace {

constexpr std::string_view kEnding = ".kv";
constexpr std::size_t kHashDigits = 32, kIndexDigits = 6;

/// Reads a number of exactly these digits, as file_name writes them.
template <class Number>
bool read_digits(std::string_view digits, int base, Number& number) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
    return error == std::errc() && end == digits.data() + digits.size();
}

}  // namespace

std::vector<BlockKey> block_keys(const BlockOrigin& origin, std::span<const std::int32_t> tokens) {
    std::vector<BlockKey> keys;
    if (origin.size == 0) return keys;
    const std::uint64_t start[] = {origin.model.low, origin.model.high, origin.variant, origin.size};
    ContentHash before = content_hash(start, sizeof(start));
    for (std::size_t at = 0; at + origin.size <= tokens.size(); at += origin.size) {
        const ContentHash block = content_hash(tokens.data() + at, origin.size * sizeof(tokens[0]));
        const std::uint64_t link[] = {before.low, before.high, block.low, block.high};
        before = content_hash(link, sizeof(link));
        keys.push_back({before, static_cast<std::uint32_t>(keys.size())});
    }
    return keys;
}

std::string file_name(const BlockKey& key) {
    return fmt::format("{:016x}{:016x}-{:06}{}", key.hash.high, key.hash.low, key.index, kEnding);
}

std::optional<BlockKey> key_of_file(std::string_view name) {
    if (name.size() != kHashDigits + 1 + kIndexDigits + kEnding.size() || !name.ends_with(kEnding) ||
        name[kHashDigits] != '-')
        return std::nullopt;
    BlockKey key;
    const bool ok = read_digits(name.substr(0, 16), 16, key.hash.high) &&
                    read_digits(name.substr(16, 16), 16, key.hash.low) &&
                    read_digits(name.substr(kHashDigits + 1, kIndexDigits), 10, key.index);
    return ok && file_name(key) == name ? std::optional(key) : std::nullopt;
}

}  // namespace headrace::llm
