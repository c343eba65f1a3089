// Filters of integers as the kernels of this folder multiply them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace::kernels {

// Output channels of a group in one panel.
inline constexpr std::size_t kPairPanel = 16;

// Bytes that pack_pairs() writes for numbers of so many bytes; k is what one output sums up.
std::size_t packed_pairs_bytes(std::size_t out_channels, std::size_t groups, std::size_t k,
                               std::size_t width);

// Packs w [out_channels][k] as numbers of `Packed`, int16_t or int8_t: panels of 16 output channels of a
// group, in which neighbours along k lie together, [k / 2][16][2], an odd k with a zero; behind all panels
// the sum of each channel's numbers, which a zero point of the other operand is multiplied with.
template <class Packed, class T>
void pack_pairs(const T* w, std::size_t out_channels, std::size_t groups, std::size_t k, std::byte* packed);

// Packs depthwise filters [channels][taps_h][taps_w]: for each two rows of taps (an odd one goes with zeros)
// and each column the channels' pairs, [(taps_h + 1) / 2][taps_w][channels][2], and the sums.
std::size_t packed_depthwise_pairs_bytes(std::size_t channels, std::size_t taps_h, std::size_t taps_w);
template <class T>
void pack_depthwise_pairs(const T* w, std::size_t channels, std::size_t taps_h, std::size_t taps_w,
                          std::byte* packed);

// Where the sums lie.
inline const std::int32_t* sums_of_pairs(const std::byte* packed, std::size_t out_channels,
                                         std::size_t groups, std::size_t k, std::size_t width) {
    const std::size_t of_group = (out_channels / groups + kPairPanel - 1) / kPairPanel * kPairPanel;
    return reinterpret_cast<const std::int32_t*>(packed + groups * of_group * ((k + 1) / 2) * 2 * width);
}
inline const std::int32_t* sums_of_depthwise_pairs(const std::byte* packed, std::size_t channels,
                                                   std::size_t taps_h, std::size_t taps_w) {
    return reinterpret_cast<const std::int32_t*>(packed + (taps_h + 1) / 2 * taps_w * channels * 2 *
                                                              sizeof(std::int16_t));
}

}  // namespace headrace::kernels
