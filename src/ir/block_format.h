#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace headrace {

/// How the elements of a constant are stored: plainly, or quantised in blocks along the last axis, each with
/// its own scales, in ggml's layouts and in some with scales in f32. Numbers are part of the file format.
enum class BlockFormat : std::uint8_t {
    plain,
    q8_0,  ///< scale (f16) · 32 × i8
    q4_0,  ///< scale (f16) · 32 × (4 bits - 8); element i shares a byte with element i + 16, in its low half
    q4_1,       ///< scale (f16) · 32 × 4 bits + minimum (f16)
    q5_0,       ///< as q4_0 with 5 bits - 16; the fifth bits lie together
    q5_1,       ///< as q4_1 with 5 bits
    q4_k,       ///< blocks of 256: 8 groups of 32 × 4 bits, with scales and minima of 6 bits
    q5_k,       ///< as q4_k with 5 bits
    q6_k,       ///< blocks of 256: 16 groups of 16 × (6 bits - 32), with scales of 8 bits
    q8_0_f32,   ///< scale (f32) · 32 × i8
    q4_0_f32,   ///< scale (f32) · 32 × (4 bits - 8), which lie as in q4_0
    q4_1_f32,   ///< scale (f32) · 32 × 4 bits + minimum (f32)
    q8_16_f32,  ///< two blocks of 16: 2 × scale (f32), 32 × i8
    q4_16_f32,  ///< two of 16: 2 × scale (f32), zero points of 4 bits in a byte, 32 × 4 bits as in q4_0
};
inline constexpr int kBlockFormatCount = 14;
/// Elements of one block up to q5_1 and from q8_0_f32 on, and of the groups in which larger blocks unpack.
inline constexpr std::int64_t kBlockElements = 32;

/// Whether ggml has the format.
constexpr bool is_of_ggml(BlockFormat format) { return format < BlockFormat::q8_0_f32; }

/// Whether each half of a block has a scale of its own.
constexpr bool has_blocks_of_16(BlockFormat format) { return format >= BlockFormat::q8_16_f32; }

std::string_view name_of(BlockFormat format);  ///< "plain", "q8_0", ...

/// Elements of one block; 1 for plain.
constexpr std::int64_t block_elements(BlockFormat format) {
    if (format == BlockFormat::plain) return 1;
    return format >= BlockFormat::q4_k && is_of_ggml(format) ? 256 : kBlockElements;
}

/// Bytes of one block; 0 for plain.
constexpr std::size_t block_bytes(BlockFormat format) {
    constexpr std::size_t kBytes[] = {0,
                                      2 + 32,
                                      2 + 16,
                                      4 + 16,
                                      2 + 4 + 16,
                                      4 + 4 + 16,
                                      4 + 12 + 128,
                                      4 + 12 + 32 + 128,
                                      2 + 16 + 64 + 128,
                                      4 + 32,
                                      4 + 16,
                                      8 + 16,
                                      8 + 32,
                                      8 + 1 + 16};
    return kBytes[static_cast<std::size_t>(format)];
}

/// Bytes of so many elements in whole blocks.
constexpr std::size_t blocks_bytes(BlockFormat format, std::int64_t elements) {
    return static_cast<std::size_t>(elements / block_elements(format)) * block_bytes(format);
}

/// Rounds to the nearest that the block can say, as ggml does. `elements` is a multiple of 32; only for q8_0,
/// q4_0 and those that ggml lacks: for the others, whose searches are ggml's own, see emit's
/// quantize_rows.
void quantize(BlockFormat format, const float* from, std::int64_t elements, std::byte* to);
/// The exact values that the blocks stand for.
void dequantize(BlockFormat format, const std::byte* from, std::int64_t elements, float* to);

}  // namespace headrace
