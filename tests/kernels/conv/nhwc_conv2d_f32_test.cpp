#include "kernels/conv/nhwc_conv2d_f32.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/conv/conv_case.h"
#include "kernels/each_target.h"

namespace headrace::kernels {
namespace {

using testing::expect_conv;
using testing::for_each_target;
using testing::NhwcKernel;
using testing::Residual;
using testing::with_3x3;

// Most cases are those of conv2d_f32_test and packed_conv2d_f32_test, which run these kernels, too.

TEST(NhwcConv2dF32, AppliesEveryActivationBeforeOrAfterTheResidual) {
    for_each_target([] {
        int nth = 1;
        for (const Activation activation : {Activation::none, Activation::relu, Activation::clamp})
            for (const Residual residual : {Residual::none, Residual::last, Residual::first})
                for (const size_t groups : {1, 2, 18})
                    expect_conv(
                        with_3x3(
                            {.in_channels = 18, .in_h = 7, .in_w = 9, .out_channels = 18, .groups = groups}),
                        nth++ % 4 + 1, activation, true, residual);
    });
}

TEST(NhwcConv2dF32, ConvolvesWideAndDepthwiseWindows) {
    for_each_target([] {
        for (const size_t kernel : {1, 3, 5, 7})
            for (const size_t stride : {1, 2, 3})
                for (const size_t dilation : {1, 2})
                    expect_conv({.batch = 2,
                                 .in_channels = 21,
                                 .in_h = 15,
                                 .in_w = 17,
                                 .out_channels = 21,
                                 .groups = 21,
                                 .kernel_h = kernel,
                                 .kernel_w = kernel,
                                 .stride_h = stride,
                                 .stride_w = stride,
                                 .dilation_h = dilation,
                                 .dilation_w = dilation,
                                 .pad_top = static_cast<ptrdiff_t>(kernel / 2),
                                 .pad_left = 1,
                                 .pad_bottom = 1,
                                 .pad_right = 2},
                                3, Activation::relu, true, Residual::last);
    });
}

TEST(NhwcWinogradConv2dF32, ComputesImagesOfAnySizeAndPadding) {
    for_each_target([] {
        size_t turn = 0;
        for (const size_t height : {3, 4, 7, 12})
            for (const size_t width : {3, 6, 9, 31})
                for (const ptrdiff_t pad : {0, 1, 2}) {
                    ++turn;
                    expect_conv({.batch = 1 + turn % 2,
                                 .in_channels = 5 + turn % 30,
                                 .in_h = height,
                                 .in_w = width,
                                 .out_channels = 3 + 7 * (turn % 13),
                                 .kernel_h = 3,
                                 .kernel_w = 3,
                                 .pad_top = pad,
                                 .pad_left = pad,
                                 .pad_bottom = 1,
                                 .pad_right = pad},
                                static_cast<int>(turn % 5) + 1, Activation::clamp, turn % 3 > 0,
                                static_cast<Residual>(turn % 3));
                }
    });
}

TEST(NhwcWinogradConv2dF32, ComputesGroupsOfChannels) {
    for_each_target([] {
        int nth = 1;
        for (const size_t groups : {2, 3, 5})
            for (const size_t in : {1, 8, 19})
                for (const size_t out : {3, 16, 70})
                    expect_conv(with_3x3({.batch = 2,
                                          .in_channels = groups * in,
                                          .in_h = 5,
                                          .in_w = 8,
                                          .out_channels = groups * out,
                                          .groups = groups}),
                                nth++ % 5 + 1, Activation::relu, true, Residual::last);
    });
}

// Tiles are repeated window by window where they meet what is no number.
TEST(NhwcWinogradConv2dF32, KeepsNaNAndInfinityInTheWindowsThatMeetThem) {
    constexpr size_t kChannels = 40, kSide = 9;
    constexpr float kInf = std::numeric_limits<float>::infinity();
    size_t turn = 0;
    for (const float odd : {std::numeric_limits<float>::quiet_NaN(), kInf, -kInf}) {
        Conv2dArgs g;
        g.in_channels = g.out_channels = kChannels, g.in_h = g.in_w = g.out_h = g.out_w = kSide;
        g.kernel_h = g.kernel_w = 3, g.pad_top = g.pad_left = 1, g.groups = 1 + turn++ % 2;
        std::vector<float> x(kChannels * kSide * kSide), w(kChannels * kChannels / g.groups * 9),
            y(kChannels * kSide * kSide);
        for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) / 4 - 1;
        for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i % 5) / 8 - 0.25f;
        x[17 * kSide * kSide + 4 * kSide + 3] = odd;
        x[20 * kSide * kSide + 4 * kSide + 3] = -odd;
        x[3 * kSide * kSide] = odd;
        g.x = x.data(), g.w = w.data(), g.y = y.data();
        const auto windows = testing::nhwc_result(g, NhwcKernel::windows, 1, testing::Guarded::Side::back);
        const auto winograd = testing::nhwc_result(g, NhwcKernel::winograd, 1, testing::Guarded::Side::back);
        for (size_t i = 0; i < y.size(); ++i) {
            if (std::isfinite(windows[i]))
                ASSERT_NEAR(winograd[i], windows[i], 1e-5f * (1 + std::abs(windows[i])))
                    << odd << " at " << i;
            else if (std::isnan(windows[i]))
                ASSERT_TRUE(std::isnan(winograd[i])) << odd << " at " << i;
            else
                ASSERT_EQ(winograd[i], windows[i]) << odd << " at " << i;
        }
    }
}

TEST(NhwcWinogradConv2dF32, IsChosenForSquareWindowsOfManyChannelsOnly) {
    Conv2dArgs g;
    g.in_channels = g.out_channels = 32, g.in_h = g.in_w = g.out_h = g.out_w = 8;
    g.kernel_h = g.kernel_w = 3, g.pad_top = g.pad_left = 1;
    EXPECT_TRUE(has_nhwc_winograd_conv2d(g));
    Conv2dArgs grouped = g;
    grouped.in_channels = grouped.out_channels = 64, grouped.groups = 2;
    EXPECT_TRUE(has_nhwc_winograd_conv2d(grouped));
    const auto without = [&](auto change) {
        Conv2dArgs changed = g;
        change(changed);
        return !has_nhwc_winograd_conv2d(changed);
    };
    EXPECT_TRUE(without([](Conv2dArgs& c) { c.kernel_w = 5; }));
    EXPECT_TRUE(without([](Conv2dArgs& c) { c.stride_h = 2; }));
    EXPECT_TRUE(without([](Conv2dArgs& c) { c.dilation_w = 2; }));
    EXPECT_TRUE(without([](Conv2dArgs& c) { c.groups = 2; }));
    EXPECT_TRUE(without([](Conv2dArgs& c) { c.in_channels = 16; }));
    EXPECT_TRUE(without([](Conv2dArgs& c) { c.out_channels = 16; }));
    EXPECT_TRUE(without([](Conv2dArgs& c) { c.out_h = c.out_w = 3; }));
    EXPECT_TRUE(without([](Conv2dArgs& c) { c.out_h = 1, c.out_w = 64; }));  // half of each tile is lost
}

}  // namespace
}  // namespace headrace::kernels
