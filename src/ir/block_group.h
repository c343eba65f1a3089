#pragma once
#include <cstdint>
#include <cstring>

#include "base/half.h"
#include "ir/block_format.h"

namespace headrace {

/// 32 elements of a block as whole numbers: element i is scale[i / 16] · codes[i] + low. The products are
/// exact in f32 in every format but q6_k, which rounds once.
struct BlockGroup {
    alignas(32) std::int8_t codes[kBlockElements];
    float scale[2];
    float low = 0;
};

namespace detail {

inline int byte_at(const std::byte* from) { return std::to_integer<int>(*from); }

/// Codes of 4 bits, element i beside element i + 16.
inline void unpack_nibbles(const std::byte* codes, int shift, BlockGroup& to) {
    for (int i = 0; i < 16; ++i) {
        const int code = byte_at(codes + i);
        to.codes[i] = static_cast<std::int8_t>((code & 15) - shift);
        to.codes[i + 16] = static_cast<std::int8_t>((code >> 4) - shift);
    }
}

/// The same with fifth bits.
inline void unpack_fifths(const std::byte* codes, const std::byte* fifth, int shift, BlockGroup& to) {
    std::uint32_t high = 0;
    std::memcpy(&high, fifth, sizeof(high));
    unpack_nibbles(codes, shift, to);
    for (int i = 0; i < kBlockElements; ++i)
        to.codes[i] = static_cast<std::int8_t>(to.codes[i] + ((high >> i & 1) << 4));
}

/// Group `g` of 8 in a block of q4_k or q5_k: scale, least scale, 12 bytes of 6-bit scales and minima, for
/// q5_k the fifth bits (bit g of byte i), then nibbles, of which groups 2j and 2j + 1 share bytes.
inline void unpack_k(const std::byte* block, int g, bool has_fifth, BlockGroup& to) {
    const std::byte* packed = block + 4;
    int scale, least;
    if (g < 4) {
        scale = byte_at(packed + g) & 63;
        least = byte_at(packed + g + 4) & 63;
    } else {
        scale = (byte_at(packed + g + 4) & 15) | (byte_at(packed + g - 4) >> 6) << 4;
        least = byte_at(packed + g + 4) >> 4 | (byte_at(packed + g) >> 6) << 4;
    }
    to.scale[0] = to.scale[1] = load_half(block) * static_cast<float>(scale);
    to.low = -(load_half(block + 2) * static_cast<float>(least));
    const std::byte* fifth = block + 16;
    const std::byte* codes = fifth + (has_fifth ? 32 : 0) + g / 2 * 32;
    for (int i = 0; i < 32; ++i) {
        const int bit = has_fifth ? byte_at(fifth + i) >> g & 1 : 0;
        to.codes[i] = static_cast<std::int8_t>((byte_at(codes + i) >> g % 2 * 4 & 15) + (bit << 4));
    }
}

/// Group `g` of 8 in a block of q6_k: 128 bytes of low nibbles, 64 of high pairs, 16 scales, the scale of
/// those. Each half of the block has its 4 groups side by side in 64 and 32 bytes.
inline void unpack_q6_k(const std::byte* block, int g, BlockGroup& to) {
    const int half = g / 4, quarter = g % 4;
    const std::byte* low = block + half * 64 + quarter % 2 * 32;
    const std::byte* high = block + 128 + half * 32;
    const std::byte* scales = block + 192 + g * 2;
    const float scale = load_half(block + 208);
    for (int i = 0; i < 2; ++i)
        to.scale[i] = scale * static_cast<float>(std::to_integer<std::int8_t>(scales[i]));
    to.low = 0;
    for (int i = 0; i < 32; ++i)
        to.codes[i] = static_cast<std::int8_t>(
            ((byte_at(low + i) >> quarter / 2 * 4 & 15) | (byte_at(high + i) >> quarter * 2 & 3) << 4) - 32);
}

inline float load_float(const std::byte* from) {
    float value;
    std::memcpy(&value, from, sizeof(value));
    return value;
}

/// Unpacks two blocks of 16 with scales in f32.
inline void unpack_pair(BlockFormat format, const std::byte* block, BlockGroup& to) {
    to.scale[0] = load_float(block);
    to.scale[1] = load_float(block + 4);
    to.low = 0;
    if (format == BlockFormat::q8_16_f32) {
        std::memcpy(to.codes, block + 8, sizeof(to.codes));
        return;
    }
    unpack_nibbles(block + 9, 0, to);
    const int zeros = byte_at(block + 8);
    for (int i = 0; i < 16; ++i) {
        to.codes[i] = static_cast<std::int8_t>(to.codes[i] - (zeros & 15));
        to.codes[i + 16] = static_cast<std::int8_t>(to.codes[i + 16] - (zeros >> 4));
    }
}

/// Unpacks a block of the formats with scales in f32.
inline void unpack_f32(BlockFormat format, const std::byte* block, BlockGroup& to) {
    if (has_blocks_of_16(format)) return unpack_pair(format, block, to);
    const bool has_minimum = format == BlockFormat::q4_1_f32;
    to.scale[0] = to.scale[1] = load_float(block);
    to.low = has_minimum ? load_float(block + 4) : 0;
    if (format == BlockFormat::q8_0_f32)
        std::memcpy(to.codes, block + 4, sizeof(to.codes));
    else
        unpack_nibbles(block + (has_minimum ? 8 : 4), has_minimum ? 0 : 8, to);
}

}  // namespace detail

/// Elements [32 · group, 32 · group + 32) of a row of blocks; not for plain.
inline void unpack_group(BlockFormat format, const std::byte* row, std::int64_t group, BlockGroup& to) {
    const std::int64_t groups = block_elements(format) / kBlockElements;
    const std::byte* block = row + static_cast<std::size_t>(group / groups) * block_bytes(format);
    const int in_block = static_cast<int>(group % groups);
    if (format == BlockFormat::q4_k || format == BlockFormat::q5_k)
        return detail::unpack_k(block, in_block, format == BlockFormat::q5_k, to);
    if (format == BlockFormat::q6_k) return detail::unpack_q6_k(block, in_block, to);
    if (!is_of_ggml(format)) return detail::unpack_f32(format, block, to);
    to.scale[0] = to.scale[1] = load_half(block);
    const bool has_minimum = format == BlockFormat::q4_1 || format == BlockFormat::q5_1;
    to.low = has_minimum ? load_half(block + 2) : 0;
    const std::byte* after = block + (has_minimum ? 4 : 2);
    switch (format) {
        case BlockFormat::q8_0: std::memcpy(to.codes, after, sizeof(to.codes)); break;
        case BlockFormat::q4_0: detail::unpack_nibbles(after, 8, to); break;
        case BlockFormat::q4_1: detail::unpack_nibbles(after, 0, to); break;
        case BlockFormat::q5_0: detail::unpack_fifths(after + 4, after, 16, to); break;
        default: detail::unpack_fifths(after + 4, after, 0, to); break;
    }
}

}  // namespace headrace
