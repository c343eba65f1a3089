// How a convolution with channels last is dealt out to threads.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/conv/packed_conv2d_f32.h"

namespace headrace::kernels {

// Pixels [pixel, pixel_end), counted over all images and groups, times output channels [out, out_end) of a
// group.
struct ConvShare {
    size_t pixel, pixel_end, out, out_end;
};

struct ConvExtent {
    size_t pixels, out_channels, depth;  // of all images and groups; of a group; inputs of a sum
};

// Parts by pixels times parts by channels: at most nth.
struct ConvParts {
    size_t by_pixels, by_channels;
};

// Cycles that a thread is going to take, about: a vector multiply-add each, and kCyclesPerLine for each cache
// line of filters and pixels that it reads, and of its results that the reader, who mostly divides by pixels,
// finds in another core's cache.
inline double estimated_cycles(const ConvExtent& extent, const ConvParts& parts) {
    constexpr double kLineFloats = 16, kCyclesPerLine = 4;
    const size_t panels = (extent.out_channels + kFilterPanel - 1) / kFilterPanel;
    const auto largest = [](size_t count, size_t among) {
        return static_cast<double>((count + among - 1) / among);
    };
    const double pixels = largest(extent.pixels, parts.by_pixels);
    const double part_panels = largest(panels, parts.by_channels), channels = part_panels * kFilterPanel;
    const double depth = static_cast<double>(extent.depth);
    const double elsewhere = 1.0 - 1.0 / static_cast<double>(parts.by_channels);
    const double lines = (depth * (channels + pixels) + pixels * channels * elsewhere) / kLineFloats;
    return pixels * part_panels * depth + lines * kCyclesPerLine;
}

inline ConvParts choose_parts(const ConvExtent& extent, size_t nth) {
    ConvParts best{nth, 1};
    for (size_t by_pixels = 1; by_pixels < nth; ++by_pixels) {
        const ConvParts parts{by_pixels, nth / by_pixels};
        if (estimated_cycles(extent, parts) < estimated_cycles(extent, best)) best = parts;
    }
    return best;
}

// The share of thread ith of nth, which may be empty.
inline ConvShare conv_share(const ConvExtent& extent, int ith, int nth) {
    const auto [by_pixels, by_channels] = choose_parts(extent, static_cast<size_t>(nth));
    const size_t part = static_cast<size_t>(ith);
    if (part >= by_pixels * by_channels) return {};
    const size_t row = part % by_pixels, column = part / by_pixels;
    const size_t panels = (extent.out_channels + kFilterPanel - 1) / kFilterPanel;
    const auto channel = [&](size_t i) {
        return std::min(extent.out_channels, panels * i / by_channels * kFilterPanel);
    };
    return {extent.pixels * row / by_pixels, extent.pixels * (row + 1) / by_pixels, channel(column),
            channel(column + 1)};
}

}  // namespace headrace::kernels
