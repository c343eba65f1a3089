#include "kernels/conv/conv2d_f32.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/conv/conv_case.h"
#include "kernels/each_target.h"

namespace headrace::kernels {
namespace {

using testing::ConvShape;
using testing::expect_conv;
using testing::for_each_target;
using testing::Residual;
using testing::with_3x3;

TEST(Conv2dF32, MatchesDoubleReferenceOverKernelsStridesAndPads) {
    for_each_target([] {
        size_t turn = 0;
        for (size_t kernel : {1, 2, 3, 5})
            for (size_t stride : {1, 2, 3})
                for (ptrdiff_t pad : {0, 1, 2}) {
                    const ConvShape shape{.batch = 2,
                                          .in_channels = 3,
                                          .in_h = 9,
                                          .in_w = 23,
                                          .out_channels = 7,
                                          .kernel_h = kernel,
                                          .kernel_w = kernel,
                                          .stride_h = stride,
                                          .stride_w = stride,
                                          .pad_top = pad,
                                          .pad_left = pad,
                                          .pad_bottom = pad,
                                          .pad_right = pad};
                    expect_conv(shape, testing::thread_count(turn++));
                }
    });
}

TEST(Conv2dF32, FollowsUnequalPadsStridesAndDilations) {
    for_each_target([] {
        expect_conv({.in_channels = 2,
                     .in_h = 17,
                     .in_w = 70,
                     .out_channels = 3,
                     .kernel_h = 3,
                     .kernel_w = 2,
                     .stride_h = 1,
                     .stride_w = 2,
                     .dilation_h = 2,
                     .dilation_w = 3,
                     .pad_top = 3,
                     .pad_left = 0,
                     .pad_bottom = 0,
                     .pad_right = 4},
                    2);
        expect_conv({.in_channels = 1,
                     .in_h = 4,
                     .in_w = 4,
                     .out_channels = 9,
                     .kernel_h = 2,
                     .kernel_w = 2,
                     .pad_top = 5,
                     .pad_left = 6,
                     .pad_bottom = 7,
                     .pad_right = 5},
                    3);
        expect_conv({.in_channels = 2,
                     .in_h = 8,
                     .in_w = 9,
                     .out_channels = 4,
                     .kernel_h = 2,
                     .kernel_w = 2,
                     .pad_top = -1,
                     .pad_left = -2,
                     .pad_bottom = -1,
                     .pad_right = -1},
                    1);
    });
}

TEST(Conv2dF32, ContinuesSumsAcrossDepthSlices) {
    for_each_target([] {
        expect_conv(with_3x3({.in_channels = 70, .in_h = 6, .in_w = 13, .out_channels = 13}), 2,
                    Activation::relu, true);
        expect_conv(
            {.in_channels = 2, .in_h = 20, .in_w = 19, .out_channels = 3, .kernel_h = 17, .kernel_w = 17}, 2);
    });
}

TEST(Conv2dF32, ReadsPointwiseInputsInPlace) {
    for_each_target([] {
        size_t turn = 0;
        for (size_t width : {7, 8, 14, 16})
            expect_conv({.batch = 2, .in_channels = 20, .in_h = width, .in_w = width, .out_channels = 11},
                        testing::thread_count(turn++), Activation::clamp, true,
                        width % 2 ? Residual::first : Residual::last);
    });
}

TEST(Conv2dF32, ConvolvesGroupsApart) {
    for_each_target([] {
        size_t turn = 0;
        for (size_t groups : {2, 3, 6})
            expect_conv({.batch = 2,
                         .in_channels = 6,
                         .in_h = 7,
                         .in_w = 9,
                         .out_channels = 18,
                         .groups = groups,
                         .kernel_h = 3,
                         .kernel_w = 3,
                         .pad_top = 1,
                         .pad_left = 1},
                        testing::thread_count(turn++), Activation::relu, true);
    });
}

constexpr Activation kActivations[] = {Activation::none, Activation::relu, Activation::clamp};

TEST(Conv2dF32, ConvolvesDepthwise) {
    for_each_target([] {
        size_t turn = 0;
        for (size_t width : {1, 5, 14, 33, 70})
            for (size_t stride : {1, 2, 3})
                for (size_t kernel : {1, 3, 5})
                    for (size_t multiplier : {1, 2}) {
                        const ptrdiff_t pad = static_cast<ptrdiff_t>(kernel / 2);
                        const ConvShape shape{.batch = 2,
                                              .in_channels = 5,
                                              .in_h = 11,
                                              .in_w = width,
                                              .out_channels = 5 * multiplier,
                                              .groups = 5,
                                              .kernel_h = kernel,
                                              .kernel_w = kernel,
                                              .stride_h = stride,
                                              .stride_w = stride,
                                              .pad_top = pad,
                                              .pad_left = pad,
                                              .pad_bottom = pad,
                                              .pad_right = pad};
                        expect_conv(shape, testing::thread_count(turn), kActivations[turn % 3], turn % 3 == 0,
                                    static_cast<Residual>(turn % 5 % 3));
                        ++turn;
                    }
    });
}

TEST(Conv2dF32, ConvolvesSmallDepthwiseImagesWithUnequalPads) {
    for_each_target([] {
        size_t turn = 0;
        for (size_t size : {1, 2, 3, 4, 6, 7, 15})
            for (size_t kernel : {3, 5})
                for (ptrdiff_t before : {0, 1, 2}) {
                    const ptrdiff_t after = static_cast<ptrdiff_t>(kernel) - 1 - before;
                    const ConvShape shape{.batch = 2,
                                          .in_channels = 19,
                                          .in_h = size,
                                          .in_w = size,
                                          .out_channels = 19,
                                          .groups = 19,
                                          .kernel_h = kernel,
                                          .kernel_w = kernel,
                                          .pad_top = before,
                                          .pad_left = after,
                                          .pad_bottom = after,
                                          .pad_right = before};
                    expect_conv(shape, testing::thread_count(turn), kActivations[turn % 3], true,
                                static_cast<Residual>(turn % 4 % 3));
                    ++turn;
                }
    });
}

TEST(Conv2dF32, SharesPanelsBetweenSmallImages) {
    for_each_target([] {
        size_t turn = 0;
        for (size_t size : {1, 2, 3, 5, 7})
            for (size_t kernel : {1, 3})
                for (size_t groups : {1, 3})
                    for (size_t channels : {6, 60}) {
                        const ptrdiff_t pad = static_cast<ptrdiff_t>(kernel / 2);
                        const ConvShape shape{.batch = 6,
                                              .in_channels = channels,
                                              .in_h = size,
                                              .in_w = size + 1,
                                              .out_channels = 21,
                                              .groups = groups,
                                              .kernel_h = kernel,
                                              .kernel_w = kernel,
                                              .stride_h = 1 + turn % 2,
                                              .pad_top = pad,
                                              .pad_left = pad,
                                              .pad_bottom = pad,
                                              .pad_right = pad};
                        expect_conv(shape, testing::thread_count(turn), kActivations[turn % 3], turn % 2 == 0,
                                    static_cast<Residual>(turn % 4 % 3));
                        ++turn;
                    }
    });
}

TEST(Conv2dF32, KeepsNaNAndInfinityInTheWindowsThatMeetThem) {
    for_each_target([] {
        for (size_t width : {6, 40})
            for (size_t stride : {1, 2}) {
                Conv2dArgs g;
                g.in_channels = g.out_channels = g.groups = 2, g.in_h = 5, g.in_w = width;
                g.kernel_h = g.kernel_w = 3, g.stride_h = g.stride_w = stride, g.pad_top = g.pad_left = 1;
                g.out_h = (5 - 1) / stride + 1, g.out_w = (width - 1) / stride + 1;
                std::vector<float> x(2 * 5 * width, 1), w(18, 1), y(2 * g.out_h * g.out_w, -1);
                x[2 * width + 4] = NAN;             // channel 0
                x[(5 + 2) * width + 4] = INFINITY;  // channel 1
                g.x = x.data(), g.w = w.data(), g.y = y.data();
                g.activation = Activation::clamp, g.clamp_max = 100;
                conv2d_f32(g, 0, 1);
                for (size_t row = 0; row < g.out_h; ++row)
                    for (size_t column = 0; column < g.out_w; ++column) {
                        const auto meets = [&](size_t at, size_t mid) {
                            return at * stride + 1 >= mid && at * stride <= mid + 1;
                        };
                        const bool inside = meets(row, 2) && meets(column, 4);
                        const float* at = y.data() + row * g.out_w + column;
                        ASSERT_EQ(std::isnan(*at), inside) << row << ", " << column;
                        ASSERT_EQ(at[g.out_h * g.out_w] == 100, inside) << row << ", " << column;
                    }
            }
    });
}

TEST(Conv2dF32, ConvolvesDepthwiseWithDilationAndUnequalPads) {
    for_each_target([] {
        expect_conv({.in_channels = 3,
                     .in_h = 12,
                     .in_w = 40,
                     .out_channels = 3,
                     .groups = 3,
                     .kernel_h = 3,
                     .kernel_w = 3,
                     .stride_h = 2,
                     .stride_w = 2,
                     .dilation_h = 2,
                     .dilation_w = 3,
                     .pad_top = 4,
                     .pad_left = 1,
                     .pad_bottom = 0,
                     .pad_right = 9},
                    2, Activation::clamp, true, Residual::first);
        expect_conv({.in_channels = 3,
                     .in_h = 9,
                     .in_w = 9,
                     .out_channels = 3,
                     .groups = 3,
                     .kernel_h = 3,
                     .kernel_w = 3,
                     .pad_top = -1,
                     .pad_left = -2},
                    2);
    });
}

TEST(Conv2dF32, ConvolvesDepthwiseImagesThatDoNotFitTheBuffer) {
    for_each_target([] {
        expect_conv(with_3x3({.in_channels = 2, .in_h = 150, .in_w = 300, .out_channels = 2, .groups = 2}),
                    3);
        // A row too long for the buffer takes the path of the matrix product.
        expect_conv({.in_channels = 2,
                     .in_h = 3,
                     .in_w = 9000,
                     .out_channels = 2,
                     .groups = 2,
                     .kernel_h = 3,
                     .kernel_w = 3},
                    2);
    });
}

TEST(Conv2dF32, SplitsOnePlaneOverThreads) {
    for_each_target([] {
        expect_conv(
            {.in_channels = 1, .in_h = 30, .in_w = 20, .out_channels = 1, .kernel_h = 3, .kernel_w = 3}, 7);
        expect_conv(
            {.in_channels = 8, .in_h = 7, .in_w = 7, .out_channels = 100, .kernel_h = 3, .kernel_w = 3}, 7);
    });
}

}  // namespace
}  // namespace headrace::kernels
