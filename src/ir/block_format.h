#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace headrace {

/// How the elements of a constant are stored: plainly, or quantised in blocks of 32 along the last axis, each
/// with its own scale, in ggml's layouts. Numbers are part of the file format.
enum class BlockFormat : std::uint8_t {
    plain,
    q8_0,  ///< scale (f16) · 32 × i8
    q4_0,  ///< scale (f16) · 32 × (4 bits - 8); element i shares a byte with element i + 16, in its low half
    q4_1,  ///< scale (f16) · 32 × 4 bits + minimum (f16)
};
inline constexpr int kBlockFormatCount = 4;
inline constexpr std::int64_t kBlockElements = 32;

std::string_view name_of(BlockFormat format);  ///< "plain", "q8_0", ...

/// Of one block; 0 for plain.
constexpr std::size_t block_bytes(BlockFormat format) {
    constexpr std::size_t kBytes[] = {0, 2 + 32, 2 + 16, 4 + 16};
    return kBytes[static_cast<std::size_t>(format)];
}

/// Rounds to the nearest that the block can say, as ggml does. `elements` is a multiple of 32; not for q4_1.
void quantise(BlockFormat format, const float* from, std::int64_t elements, std::byte* to);
/// The exact values that the blocks stand for.
void dequantise(BlockFormat format, const std::byte* from, std::int64_t elements, float* to);

}  // namespace headrace
