#include "kernels/conv/packed_conv2d_f32.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/conv/conv_case.h"
#include "kernels/each_target.h"

namespace headrace::kernels {
namespace {

using testing::expect_conv;
using testing::for_each_target;
using testing::PackedFilters;
using testing::Residual;
using testing::with_3x3;

// Cases of few channels are those of conv2d_f32_test, which run this kernel, too.

TEST(PackedConv2dF32, SumsManyChannelsInSlices) {
    for_each_target([] {
        size_t turn = 0;
        for (size_t out_channels : {16, 24, 64, 65, 80, 130}) {
            const int nth = testing::thread_count(turn);
            expect_conv(with_3x3({.in_channels = 61, .in_h = 9, .in_w = 11, .out_channels = out_channels}),
                        nth, Activation::relu, true, static_cast<Residual>(turn % 3));
            ++turn;
        }
    });
}

TEST(PackedConv2dF32, CutsWideImagesIntoParts) {
    for_each_target([] {
        for (size_t width : {96, 97, 193, 400})
            for (size_t stride : {1, 2})
                expect_conv({.batch = 2,
                             .in_channels = 20,
                             .in_h = 3,
                             .in_w = width,
                             .out_channels = 16,
                             .kernel_h = 3,
                             .kernel_w = 5,
                             .stride_w = stride,
                             .pad_top = 1,
                             .pad_left = 2,
                             .pad_bottom = 1,
                             .pad_right = 2},
                            3, Activation::clamp, true, Residual::first);
        expect_conv({.batch = 2, .in_channels = 5, .in_h = 20, .in_w = 30, .out_channels = 20}, 7);
    });
}

// Few channels in, rows that fill vectors, steps of at most 2: sums of neighbours in a row.
TEST(PackedConv2dF32, SumsFewChannelsRowByRow) {
    for_each_target([] {
        size_t turn = 0;
        for (size_t width : {15, 16, 32, 48, 61, 112})
            for (size_t stride : {1, 2})
                for (size_t out_channels : {8, 13, 16, 37, 64}) {
                    expect_conv({.batch = 2,
                                 .in_channels = 3,
                                 .in_h = 11,
                                 .in_w = width * stride,
                                 .out_channels = out_channels,
                                 .kernel_h = 7,
                                 .kernel_w = 5,
                                 .stride_h = stride,
                                 .stride_w = stride,
                                 .dilation_h = 1 + turn % 2,
                                 .dilation_w = 1 + turn % 3,
                                 .pad_top = 3,
                                 .pad_left = static_cast<ptrdiff_t>(2 + turn % 3 * 2),
                                 .pad_bottom = 4,
                                 .pad_right = static_cast<ptrdiff_t>(2 + turn % 3 * 2)},
                                testing::thread_count(turn), Activation::relu, turn % 4 != 0,
                                static_cast<Residual>(turn % 3));
                    ++turn;
                }
    });
}

TEST(PackedConv2dF32, SumsGroupsOfFewChannelsRowByRow) {
    for_each_target([] {
        expect_conv(
            with_3x3({.batch = 2, .in_channels = 6, .in_h = 40, .in_w = 64, .out_channels = 60, .groups = 3}),
            5, Activation::clamp, true, Residual::first);
    });
}

// Pixels that nearly fill vectors, in one piece and in several; too many channels to be copied at a time.
TEST(PackedConv2dF32, SumsSinglePixelsBesideTheirNeighbors) {
    for_each_target([] {
        size_t turn = 0;
        for (size_t in_channels : {1, 7, 61, 1400})
            for (size_t width : {3, 7, 16, 47, 61})
                for (size_t out_channels : {8, 13, 37, 150}) {
                    if (in_channels == 1400 && out_channels != 13) continue;
                    const size_t groups = 1 + turn % 2;
                    expect_conv({.batch = 2,
                                 .in_channels = in_channels * groups,
                                 .in_h = 5 + turn % 4,
                                 .in_w = width,
                                 .out_channels = out_channels * groups,
                                 .groups = groups},
                                testing::thread_count(turn),
                                turn % 4 < 2 ? Activation::relu : Activation::clamp, turn % 5 != 0,
                                static_cast<Residual>(turn % 3));
                    ++turn;
                }
    });
}

TEST(PackedConv2dF32, ReadsPlanesThatAreFourKilobytesApart) {
    for_each_target([] {
        expect_conv({.in_channels = 40, .in_h = 8, .in_w = 32, .out_channels = 16}, 2);
        expect_conv(
            {.in_channels = 4, .in_h = 32, .in_w = 32, .out_channels = 16, .kernel_h = 2, .kernel_w = 2}, 2);
    });
}

TEST(PackedConv2dF32, KeepsNaNInTheWindowsThatMeetIt) {
    for_each_target([] {
        constexpr size_t kChannels = 20, kSide = 8;
        Conv2dArgs g;
        g.in_channels = 2, g.out_channels = kChannels, g.in_h = g.in_w = g.out_h = g.out_w = kSide;
        g.kernel_h = g.kernel_w = 3, g.pad_top = g.pad_left = 1;
        std::vector<float> x(2 * kSide * kSide, 1), w(kChannels * 18, 1), y(kChannels * kSide * kSide, -1);
        x[kSide * kSide + 3 * kSide + 4] = NAN;
        g.x = x.data(), g.w = w.data(), g.y = y.data();
        const PackedFilters filters(g);
        packed_conv2d_f32(g, filters.data(), 0, 1);
        for (size_t at = 0; at < y.size(); ++at) {
            const size_t row = at / kSide % kSide, column = at % kSide;
            const bool meets = row >= 2 && row <= 4 && column >= 3 && column <= 5;
            ASSERT_EQ(std::isnan(y[at]), meets) << at;
        }
    });
}

}  // namespace
}  // namespace headrace::kernels
