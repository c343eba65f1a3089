#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace headrace::node {

struct FreeMemory {
    void operator()(std::byte* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::byte[], FreeMemory>;

/// Aligned so that runs read and write it in place.
inline Memory memory_of(std::size_t bytes) {
    constexpr std::size_t kAlignment = 64;
    const std::size_t rounded = std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
    if (rounded < bytes) throw std::bad_alloc();
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
    if (!memory) throw std::bad_alloc();
    return Memory(memory);
}

}  // namespace headrace::node
