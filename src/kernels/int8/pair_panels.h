// Filters of integers as the kernels of this folder multiply them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace::kernels {

// Output channels of a group in one panel.
inline constexpr size_t kPairPanel = 16;

// Bytes that pack_pairs() writes for numbers of so many bytes; k is what one output sums up.
size_t packed_pairs_bytes(size_t out_channels, size_t groups, size_t k, size_t width);

// Packs w [out_channels][k] as numbers of `Packed`, int16_t or int8_t: panels of 16 output channels of a
// group, in which neighbours along k lie together, [k / 2][16][2], an odd k with a zero; behind all panels
// the sum of each channel's numbers, which a zero point of the other operand is multiplied with.
template <class Packed, class T>
void pack_pairs(const T* w, size_t out_channels, size_t groups, size_t k, std::byte* packed);

// Packs depthwise filters [channels][taps_h][taps_w]: for each two rows of taps (an odd one goes with zeros)
// and each column the channels' pairs, [(taps_h + 1) / 2][taps_w][channels][2], and the sums.
size_t packed_depthwise_pairs_bytes(size_t channels, size_t taps_h, size_t taps_w);
template <class T>
void pack_depthwise_pairs(const T* w, size_t channels, size_t taps_h, size_t taps_w, std::byte* packed);

// Where the sums lie.
inline const int32_t* sums_of_pairs(const std::byte* packed, size_t out_channels, size_t groups, size_t k,
                                    size_t width) {
    const size_t of_group = (out_channels / groups + kPairPanel - 1) / kPairPanel * kPairPanel;
    return reinterpret_cast<const int32_t*>(packed + groups * of_group * ((k + 1) / 2) * 2 * width);
}
inline const int32_t* sums_of_depthwise_pairs(const std::byte* packed, size_t channels, size_t taps_h,
                                              size_t taps_w) {
    return reinterpret_cast<const int32_t*>(packed +
                                            (taps_h + 1) / 2 * taps_w * channels * 2 * sizeof(int16_t));
}

}  // namespace headrace::kernels
