#include "kernels/int8/pair_panels.h"

#include <cstring>

namespace headrace::kernels {
namespace {

std::size_t padded_channels(std::size_t out_channels, std::size_t groups) {
    return (out_channels / groups + kPairPanel - 1) / kPairPanel * kPairPanel;
}

}  // namespace

std::size_t packed_pairs_bytes(std::size_t out_channels, std::size_t groups, std::size_t k,
                               std::size_t width) {
    const std::size_t channels = groups * padded_channels(out_channels, groups);
    return channels * ((k + 1) / 2 * 2 * width + sizeof(std::int32_t));
}

template <class Packed, class T>
void pack_pairs(const T* w, std::size_t out_channels, std::size_t groups, std::size_t k, std::byte* packed) {
    std::memset(packed, 0, packed_pairs_bytes(out_channels, groups, k, sizeof(Packed)));
    const std::size_t pairs = (k + 1) / 2, of_group = out_channels / groups;
    const std::size_t padded = padded_channels(out_channels, groups);
    auto* to = reinterpret_cast<Packed*>(packed);
    auto* sums = reinterpret_cast<std::int32_t*>(packed + groups * padded * pairs * 2 * sizeof(Packed));
    for (std::size_t o = 0; o < out_channels; ++o) {
        const std::size_t channel = o / of_group * padded + o % of_group, lane = channel % kPairPanel;
        Packed* panel = to + channel / kPairPanel * pairs * kPairPanel * 2;
        for (std::size_t i = 0; i < k; ++i) {
            const auto number = static_cast<Packed>(w[o * k + i]);
            panel[(i / 2 * kPairPanel + lane) * 2 + i % 2] = number;
            sums[channel] += number;
        }
    }
}

std::size_t packed_depthwise_pairs_bytes(std::size_t channels, std::size_t taps_h, std::size_t taps_w) {
    return channels * ((taps_h + 1) / 2 * taps_w * 2 * sizeof(std::int16_t) + sizeof(std::int32_t));
}

template <class T>
void pack_depthwise_pairs(const T* w, std::size_t channels, std::size_t taps_h, std::size_t taps_w,
                          std::byte* packed) {
    std::memset(packed, 0, packed_depthwise_pairs_bytes(channels, taps_h, taps_w));
    auto* to = reinterpret_cast<std::int16_t*>(packed);
    auto* sums = reinterpret_cast<std::int32_t*>(packed + (taps_h + 1) / 2 * taps_w * channels * 2 *
                                                              sizeof(std::int16_t));
    for (std::size_t c = 0; c < channels; ++c)
        for (std::size_t y = 0; y < taps_h; ++y)
            for (std::size_t x = 0; x < taps_w; ++x) {
                const auto number = static_cast<std::int16_t>(w[(c * taps_h + y) * taps_w + x]);
                to[((y / 2 * taps_w + x) * channels + c) * 2 + y % 2] = number;
                sums[c] += number;
            }
}

template void pack_pairs<std::int8_t>(const std::int8_t*, std::size_t, std::size_t, std::size_t, std::byte*);
template void pack_pairs<std::int16_t>(const std::int8_t*, std::size_t, std::size_t, std::size_t, std::byte*);
template void pack_pairs<std::int16_t>(const std::int16_t*, std::size_t, std::size_t, std::size_t,
                                       std::byte*);
template void pack_depthwise_pairs(const std::int8_t*, std::size_t, std::size_t, std::size_t, std::byte*);
template void pack_depthwise_pairs(const std::int16_t*, std::size_t, std::size_t, std::size_t, std::byte*);

}  // namespace headrace::kernels
