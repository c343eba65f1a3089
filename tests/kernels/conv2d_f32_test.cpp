#include "kernels/conv2d_f32.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/each_target.h"
#include "kernels/guarded.h"
#include "kernels/matrix.h"

namespace headrace::kernels {
namespace {

using testing::for_each_target;
using testing::Guarded;
using testing::random_floats;

struct Shape {
    size_t batch = 1, in_channels = 1, in_h = 1, in_w = 1, out_channels = 1, groups = 1, kernel_h = 1,
           kernel_w = 1;
    size_t stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
    ptrdiff_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
};

size_t out_extent(size_t in, ptrdiff_t pads, size_t kernel, size_t stride, size_t dilation) {
    return (static_cast<size_t>(static_cast<ptrdiff_t>(in) + pads) - ((kernel - 1) * dilation + 1)) / stride +
           1;
}

double exact(const Conv2dArgs& g, size_t image, size_t out, size_t oy, size_t ox) {
    const size_t group_in = g.in_channels / g.groups, group = out / (g.out_channels / g.groups);
    double sum = g.bias ? g.bias[out] : 0;
    for (size_t i = 0; i < group_in; ++i) {
        for (size_t ky = 0; ky < g.kernel_h; ++ky) {
            for (size_t kx = 0; kx < g.kernel_w; ++kx) {
                const ptrdiff_t y = static_cast<ptrdiff_t>(oy * g.stride_h + ky * g.dilation_h) - g.pad_top;
                const ptrdiff_t x = static_cast<ptrdiff_t>(ox * g.stride_w + kx * g.dilation_w) - g.pad_left;
                if (y < 0 || x < 0 || y >= static_cast<ptrdiff_t>(g.in_h) ||
                    x >= static_cast<ptrdiff_t>(g.in_w))
                    continue;
                const size_t channel = image * g.in_channels + group * group_in + i;
                sum += double(g.x[(channel * g.in_h + y) * g.in_w + x]) *
                       g.w[((out * group_in + i) * g.kernel_h + ky) * g.kernel_w + kx];
            }
        }
    }
    return sum;
}

enum class Residual { none, last, first };

void expect_conv(const Shape& s, int nth, Activation activation = Activation::none, bool bias = false,
                 Residual residual = Residual::none) {
    SCOPED_TRACE(::testing::Message()
                 << "in " << s.batch << "x" << s.in_channels << "x" << s.in_h << "x" << s.in_w << " out "
                 << s.out_channels << " groups " << s.groups << " kernel " << s.kernel_h << "x" << s.kernel_w
                 << " stride " << s.stride_h << "x" << s.stride_w << " threads " << nth);
    Conv2dArgs g;
    g.batch = s.batch, g.in_channels = s.in_channels, g.in_h = s.in_h, g.in_w = s.in_w,
    g.out_channels = s.out_channels;
    g.groups = s.groups, g.kernel_h = s.kernel_h, g.kernel_w = s.kernel_w, g.stride_h = s.stride_h,
    g.stride_w = s.stride_w;
    g.dilation_h = s.dilation_h, g.dilation_w = s.dilation_w, g.pad_top = s.pad_top, g.pad_left = s.pad_left;
    g.out_h = out_extent(s.in_h, s.pad_top + s.pad_bottom, s.kernel_h, s.stride_h, s.dilation_h);
    g.out_w = out_extent(s.in_w, s.pad_left + s.pad_right, s.kernel_w, s.stride_w, s.dilation_w);
    const std::vector<float> x = random_floats(s.batch * s.in_channels * s.in_h * s.in_w, 1);
    const std::vector<float> w =
        random_floats(s.out_channels * (s.in_channels / s.groups) * s.kernel_h * s.kernel_w, 2);
    const std::vector<float> biases = random_floats(s.out_channels, 3);
    const size_t count = s.batch * s.out_channels * g.out_h * g.out_w;
    const std::vector<float> residuals = random_floats(count, 4);
    const auto side = nth % 2 ? Guarded::Side::front : Guarded::Side::back;
    Guarded guarded_x(x, side), guarded_y(std::vector<float>(count, NAN), side);
    const float* y = guarded_y.data();
    g.x = guarded_x.data(), g.w = w.data(), g.y = guarded_y.data();
    if (bias) g.bias = biases.data();
    if (residual != Residual::none) g.residual = residuals.data();
    g.residual_first = residual == Residual::first;
    g.activation = activation, g.clamp_min = -0.5f, g.clamp_max = 0.5f;
    for (int ith = 0; ith < nth; ++ith) conv2d_f32(g, ith, nth);

    size_t at = 0;
    for (size_t image = 0; image < s.batch; ++image) {
        for (size_t out = 0; out < s.out_channels; ++out) {
            for (size_t oy = 0; oy < g.out_h; ++oy) {
                for (size_t ox = 0; ox < g.out_w; ++ox, ++at) {
                    double expected = exact(g, image, out, oy, ox);
                    if (residual == Residual::first) expected += residuals[at];
                    if (activation == Activation::relu) expected = std::max(expected, 0.0);
                    if (activation == Activation::clamp) expected = std::clamp(expected, -0.5, 0.5);
                    if (residual == Residual::last) expected += residuals[at];
                    ASSERT_NEAR(y[at], expected, 1e-5 * (1 + std::abs(expected)))
                        << image << ", " << out << ", " << oy << ", " << ox;
                }
            }
        }
    }
}

TEST(Conv2dF32, MatchesDoubleReferenceOverKernelsStridesAndPads) {
    for_each_target([] {
        size_t turn = 0;
        for (size_t kernel : {1, 2, 3, 5})
            for (size_t stride : {1, 2, 3})
                for (ptrdiff_t pad : {0, 1, 2}) {
                    const Shape shape{.batch = 2,
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
        expect_conv({.in_channels = 70,
                     .in_h = 6,
                     .in_w = 13,
                     .out_channels = 13,
                     .kernel_h = 3,
                     .kernel_w = 3,
                     .pad_top = 1,
                     .pad_left = 1,
                     .pad_bottom = 1,
                     .pad_right = 1},
                    2, Activation::relu, true);
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
                        const Shape shape{.batch = 2,
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
                    const Shape shape{.batch = 2,
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
                        const Shape shape{.batch = 6,
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
        expect_conv({.in_channels = 2,
                     .in_h = 150,
                     .in_w = 300,
                     .out_channels = 2,
                     .groups = 2,
                     .kernel_h = 3,
                     .kernel_w = 3,
                     .pad_top = 1,
                     .pad_left = 1,
                     .pad_bottom = 1,
                     .pad_right = 1},
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
