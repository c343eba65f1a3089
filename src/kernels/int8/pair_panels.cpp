#include "kernels/int8/pair_panels.h"

#include <cstring>

namespace headrace::kernels {
namespace {

size_t padded_channels(size_t out_channels, size_t groups) {
    return (out_channels / groups + kPairPanel - 1) / kPairPanel * kPairPanel;
}

}  // namespace

size_t packed_pairs_bytes(size_t out_channels, size_t groups, size_t k, size_t width) {
    const size_t channels = groups * padded_channels(out_channels, groups);
    return channels * ((k + 1) / 2 * 2 * width + sizeof(int32_t));
}

template <class Packed, class T>
void pack_pairs(const T* w, size_t out_channels, size_t groups, size_t k, std::byte* packed) {
    std::memset(packed, 0, packed_pairs_bytes(out_channels, groups, k, sizeof(Packed)));
    const size_t pairs = (k + 1) / 2, of_group = out_channels / groups;
    const size_t padded = padded_channels(out_channels, groups);
    auto* to = reinterpret_cast<Packed*>(packed);
    auto* sums = reinterpret_cast<int32_t*>(packed + groups * padded * pairs * 2 * sizeof(Packed));
    for (size_t o = 0; o < out_channels; ++o) {
        const size_t channel = o / of_group * padded + o % of_group, lane = channel % kPairPanel;
        Packed* panel = to + channel / kPairPanel * pairs * kPairPanel * 2;
        for (size_t i = 0; i < k; ++i) {
            const auto number = static_cast<Packed>(w[o * k + i]);
            panel[(i / 2 * kPairPanel + lane) * 2 + i % 2] = number;
            sums[channel] += number;
        }
    }
}

size_t packed_depthwise_pairs_bytes(size_t channels, size_t taps_h, size_t taps_w) {
    return channels * ((taps_h + 1) / 2 * taps_w * 2 * sizeof(int16_t) + sizeof(int32_t));
}

template <class T>
void pack_depthwise_pairs(const T* w, size_t channels, size_t taps_h, size_t taps_w, std::byte* packed) {
    std::memset(packed, 0, packed_depthwise_pairs_bytes(channels, taps_h, taps_w));
    auto* to = reinterpret_cast<int16_t*>(packed);
    auto* sums =
        reinterpret_cast<int32_t*>(packed + (taps_h + 1) / 2 * taps_w * channels * 2 * sizeof(int16_t));
    for (size_t c = 0; c < channels; ++c)
        for (size_t y = 0; y < taps_h; ++y)
            for (size_t x = 0; x < taps_w; ++x) {
                const auto number = static_cast<int16_t>(w[(c * taps_h + y) * taps_w + x]);
                to[((y / 2 * taps_w + x) * channels + c) * 2 + y % 2] = number;
                sums[c] += number;
            }
}

template void pack_pairs<int8_t>(const int8_t*, size_t, size_t, size_t, std::byte*);
template void pack_pairs<int16_t>(const int8_t*, size_t, size_t, size_t, std::byte*);
template void pack_pairs<int16_t>(const int16_t*, size_t, size_t, size_t, std::byte*);
template void pack_depthwise_pairs(const int8_t*, size_t, size_t, size_t, std::byte*);
template void pack_depthwise_pairs(const int16_t*, size_t, size_t, size_t, std::byte*);

}  // namespace headrace::kernels
