#include "kernels/tensor/pool2d_f32.h"

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

size_t out_extent(size_t in, ptrdiff_t pads, size_t window, size_t stride, size_t dilation) {
    return (static_cast<size_t>(static_cast<ptrdiff_t>(in) + pads) - ((window - 1) * dilation + 1)) / stride +
           1;
}

// Output extents from the others; `pads` of both ends together.
Pool2dArgs sized(Pool2dArgs g, ptrdiff_t pads) {
    g.out_h = out_extent(g.in_h, pads, g.window_h, g.stride_h, g.dilation_h);
    g.out_w = out_extent(g.in_w, pads, g.window_w, g.stride_w, g.dilation_w);
    return g;
}

size_t position(const Pool2dArgs& g, size_t image, size_t channel, size_t y, size_t x, size_t h, size_t w) {
    return g.channels_last ? ((image * h + y) * w + x) * g.channels + channel
                           : ((image * g.channels + channel) * h + y) * w + x;
}

double exact(const Pool2dArgs& g, const float* input, size_t image, size_t channel, size_t oy, size_t ox) {
    double sum = 0, largest = -INFINITY;
    size_t count = 0;
    for (size_t ky = 0; ky < g.window_h; ++ky)
        for (size_t kx = 0; kx < g.window_w; ++kx) {
            const ptrdiff_t y = static_cast<ptrdiff_t>(oy * g.stride_h + ky * g.dilation_h) - g.pad_top;
            const ptrdiff_t x = static_cast<ptrdiff_t>(ox * g.stride_w + kx * g.dilation_w) - g.pad_left;
            if (y < 0 || x < 0 || y >= static_cast<ptrdiff_t>(g.in_h) || x >= static_cast<ptrdiff_t>(g.in_w))
                continue;
            const double value = input[position(g, image, channel, static_cast<size_t>(y),
                                                static_cast<size_t>(x), g.in_h, g.in_w)];
            sum += value;
            largest = std::isnan(value) || std::isnan(largest) ? NAN : std::max(largest, value);
            ++count;
        }
    return g.is_max ? largest : count ? sum / static_cast<double>(count) : 0;
}

void expect_pool(Pool2dArgs g, int nth, bool with_nan = false) {
    SCOPED_TRACE(::testing::Message()
                 << (g.is_max ? "max" : "mean") << " of " << g.batch << "x" << g.channels << "x" << g.in_h
                 << "x" << g.in_w << (g.channels_last ? " nhwc" : " nchw") << " window " << g.window_h << "x"
                 << g.window_w << " stride " << g.stride_h << " pad " << g.pad_top << " threads " << nth);
    ASSERT_TRUE(pool2d_f32_applies(g));
    std::vector<float> values = random_floats(g.batch * g.channels * g.in_h * g.in_w, 1);
    if (with_nan)
        for (size_t i = 0; i < values.size(); i += 11) values[i] = i % 2 ? NAN : -INFINITY;
    const auto side = nth % 2 ? Guarded::Side::front : Guarded::Side::back;
    Guarded x(values, side);
    Guarded y(std::vector<float>(g.batch * g.channels * g.out_h * g.out_w, 77), side);
    g.x = x.data(), g.y = y.data();
    for (int ith = 0; ith < nth; ++ith) pool2d_f32(g, ith, nth);
    for (size_t image = 0; image < g.batch; ++image)
        for (size_t channel = 0; channel < g.channels; ++channel)
            for (size_t oy = 0; oy < g.out_h; ++oy)
                for (size_t ox = 0; ox < g.out_w; ++ox) {
                    const double expected = exact(g, values.data(), image, channel, oy, ox);
                    const float actual = g.y[position(g, image, channel, oy, ox, g.out_h, g.out_w)];
                    if (std::isfinite(expected))
                        ASSERT_NEAR(actual, expected, 1e-6) << channel << ", " << oy << ", " << ox;
                    else if (std::isnan(expected))
                        ASSERT_TRUE(std::isnan(actual)) << channel << ", " << oy << ", " << ox;
                    else
                        ASSERT_EQ(actual, expected) << channel << ", " << oy << ", " << ox;
                }
}

TEST(Pool2dF32, MatchesDoubleReferenceOverWindowsStridesAndPads) {
    for_each_target([] {
        size_t turn = 0;
        for (size_t window : {2, 3})
            for (size_t stride : {1, 2})
                for (ptrdiff_t pad : {0, 1})
                    for (size_t width : {3, 7, 16, 33, 70})
                        for (const bool is_max : {false, true}) {
                            const Pool2dArgs g = sized({.is_max = is_max,
                                                        .batch = 2,
                                                        .channels = 3,
                                                        .in_h = 8,
                                                        .in_w = width,
                                                        .window_h = window,
                                                        .window_w = window,
                                                        .stride_h = stride,
                                                        .stride_w = stride,
                                                        .pad_top = pad,
                                                        .pad_left = pad},
                                                       2 * pad);
                            if (!pool2d_f32_applies(g)) continue;  // the scalar target has whole images only
                            expect_pool(g, testing::thread_count(turn), turn % 3 == 0);
                            ++turn;
                        }
    });
}

TEST(Pool2dF32, KeepsLastWindowsThatStickOut) {
    for_each_target([] {
        for (const bool is_max : {false, true}) {
            Pool2dArgs g = sized({.is_max = is_max,
                                  .channels = 2,
                                  .in_h = 7,
                                  .in_w = 20,
                                  .window_h = 2,
                                  .window_w = 2,
                                  .stride_h = 2,
                                  .stride_w = 2},
                                 0);
            ++g.out_h, ++g.out_w;  // the last column of windows meets nothing of the image
            if (pool2d_f32_applies(g)) expect_pool(g, 2);
        }
    });
}

TEST(Pool2dF32, PoolsWholeImages) {
    for_each_target([] {
        size_t turn = 0;
        for (size_t size : {1, 3, 4, 7, 13})
            for (const bool is_max : {false, true}) {
                expect_pool(sized({.is_max = is_max,
                                   .batch = 2,
                                   .channels = 9,
                                   .in_h = size,
                                   .in_w = size,
                                   .window_h = size,
                                   .window_w = size},
                                  0),
                            testing::thread_count(turn), turn % 2 == 0);
                ++turn;
            }
    });
}

TEST(Pool2dF32, PoolsChannelsLastOverAnyWindow) {
    for_each_target([] {
        size_t turn = 0;
        for (size_t channels : {1, 5, 16, 37})
            for (size_t window : {1, 3, 4})
                for (size_t dilation : {1, 2})
                    for (const bool is_max : {false, true}) {
                        expect_pool(sized({.is_max = is_max,
                                           .channels_last = true,
                                           .batch = 2,
                                           .channels = channels,
                                           .in_h = 9,
                                           .in_w = 8,
                                           .window_h = window,
                                           .window_w = window,
                                           .stride_h = 2,
                                           .stride_w = 3,
                                           .dilation_h = dilation,
                                           .dilation_w = dilation,
                                           .pad_top = 1,
                                           .pad_left = 2},
                                          3),
                                    testing::thread_count(turn), turn % 3 == 0);
                        ++turn;
                    }
    });
}

TEST(Pool2dF32, LeavesOtherWindowsOfChannelsFirst) {
    const Pool2dArgs window{
        .channels = 1, .in_h = 9, .in_w = 9, .out_h = 3, .out_w = 3, .window_h = 5, .window_w = 5};
    EXPECT_FALSE(pool2d_f32_applies(window));
    Pool2dArgs dilated = window;
    dilated.window_h = dilated.window_w = 3, dilated.dilation_h = 2;
    EXPECT_FALSE(pool2d_f32_applies(dilated));
}

}  // namespace
}  // namespace headrace::kernels
