#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/aligned_buffer.h"
#include "ir/graph.h"

namespace headrace {

/// What a constant's address must be a multiple of for kernels to read any dtype from it in vectors.
inline constexpr std::size_t kConstantAlignment = 16;

inline bool is_constant_aligned(std::span<const std::byte> bytes) {
    return reinterpret_cast<std::uintptr_t>(bytes.data()) % kConstantAlignment == 0;
}

/// A constant that owns its bytes.
std::shared_ptr<const Constant> own_constant(AlignedBuffer bytes, std::string key = "");

/// A copy that owns its bytes; `purpose` completes the message of a failed allocation.
Result<std::shared_ptr<const Constant>> copy_constant(std::span<const std::byte> bytes,
                                                      std::string_view purpose, std::string key = "");

}  // namespace headrace
