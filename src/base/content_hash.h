#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>

namespace headrace {

/// What tells contents apart: keys and checksums of files that hold weights. Not against an adversary. Equal
/// bytes have equal hashes on every machine.
struct ContentHash {
    std::uint64_t low = 0, high = 0;

    friend bool operator==(const ContentHash&, const ContentHash&) = default;
    friend auto operator<=>(const ContentHash&, const ContentHash&) = default;
};

/// XXH3's, of 128 bits.
ContentHash content_hash(const void* data, std::size_t bytes);

}  // namespace headrace
