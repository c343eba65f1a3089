#pragma once
#include <cstdint>

namespace headrace {

/// What a hash of numbers begins with, and its step by one of them: FNV-1a's, on whole numbers. For tables in
/// memory; what is written to files has content_hash.
constexpr std::uint64_t kHashStart = 0xcbf29ce484222325;

constexpr std::uint64_t hash_step(std::uint64_t hash, std::uint64_t number) {
    return (hash ^ number) * 0x100000001b3;
}

}  // namespace headrace
