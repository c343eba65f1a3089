#include "kernels/conv/nhwc_conv_transpose2d_f32.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/each_target.h"
#include "kernels/guarded.h"
#include "kernels/matrix.h"
#include "kernels/peak_memory.h"

namespace headrace::kernels {
namespace {

using testing::for_each_target;
using testing::Guarded;
using testing::random_floats;

// With channels last: sums in double, pixel by pixel, of filters [i][o][h][w]; magnitudes bound the error.
struct Expected {
    std::vector<double> sums, magnitudes;

    Expected(const ConvTranspose2dArgs& g, const float* x, const float* w, const float* bias)
        : sums(g.batch * g.out_h * g.out_w * g.out_channels), magnitudes(sums.size(), 1) {
        for (size_t i = 0; i < sums.size() && bias; ++i) sums[i] = bias[i % g.out_channels];
        for (size_t pixel = 0; pixel < g.batch * g.in_h * g.in_w; ++pixel)
            for (size_t tap = 0; tap < g.kernel_h * g.kernel_w; ++tap) add(g, x, w, pixel, tap);
    }
    void expect(const float* y) const {
        for (size_t i = 0; i < sums.size(); ++i) ASSERT_NEAR(y[i], sums[i], 1e-6 * magnitudes[i]) << i;
    }

private:
    void add(const ConvTranspose2dArgs& g, const float* x, const float* w, size_t pixel, size_t tap) {
        const size_t n = pixel / g.in_w / g.in_h, iy = pixel / g.in_w % g.in_h, ix = pixel % g.in_w;
        const size_t ky = tap / g.kernel_w, kx = tap % g.kernel_w;
        const ptrdiff_t y = static_cast<ptrdiff_t>(iy * g.stride_h + ky * g.dilation_h) - g.pad_top;
        const ptrdiff_t at = static_cast<ptrdiff_t>(ix * g.stride_w + kx * g.dilation_w) - g.pad_left;
        if (y < 0 || at < 0 || y >= static_cast<ptrdiff_t>(g.out_h) || at >= static_cast<ptrdiff_t>(g.out_w))
            return;
        for (size_t o = 0; o < g.out_channels; ++o) {
            const size_t to = ((n * g.out_h + static_cast<size_t>(y)) * g.out_w + static_cast<size_t>(at)) *
                                  g.out_channels +
                              o;
            const size_t group = o / g.group_outputs();
            for (size_t c = 0; c < g.group_inputs(); ++c) {
                const size_t i = group * g.group_inputs() + c;
                const double product =
                    double(x[pixel * g.in_channels + i]) *
                    w[((i * g.group_outputs() + o % g.group_outputs()) * g.kernel_h + ky) * g.kernel_w + kx];
                sums[to] += product, magnitudes[to] += std::abs(product);
            }
        }
    }
};

// A batch of planes from a batch of pixels, or the other way.
std::vector<float> turned(const std::vector<float>& images, size_t batch, size_t rows) {
    const size_t size = images.size() / batch, columns = size / rows;
    std::vector<float> result(images.size());
    for (size_t i = 0; i < images.size(); ++i)
        result[i / size * size + i % columns * rows + i % size / columns] = images[i];
    return result;
}
std::vector<float> channels_first(const std::vector<float>& pixels, size_t batch, size_t channels) {
    return turned(pixels, batch, pixels.size() / batch / channels);
}
std::vector<float> channels_last(const std::vector<float>& planes, size_t batch, size_t channels) {
    return turned(planes, batch, channels);
}

std::array<ptrdiff_t, 4> iohw_strides(const ConvTranspose2dArgs& g) {
    const auto taps = static_cast<ptrdiff_t>(g.kernel_h * g.kernel_w);
    return {static_cast<ptrdiff_t>(g.group_outputs()) * taps, taps, static_cast<ptrdiff_t>(g.kernel_w), 1};
}

std::vector<float> packed_filters(const ConvTranspose2dArgs& g, const float* w) {
    std::vector<float> packed(packed_transposed_filters_bytes(g) / sizeof(float) + 16);
    auto* aligned = reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(packed.data()) + 63) / 64 * 64);
    pack_transposed_filters(g, w, iohw_strides(g), aligned);
    return {aligned, aligned + packed_transposed_filters_bytes(g) / sizeof(float)};
}

void expect_result(ConvTranspose2dArgs g, bool has_bias, int nth) {
    SCOPED_TRACE(::testing::Message()
                 << g.in_channels << "-" << g.out_channels << " groups " << g.groups << " image " << g.in_h
                 << "x" << g.in_w << " kernel " << g.kernel_h << "x" << g.kernel_w << " stride " << g.stride_h
                 << "x" << g.stride_w << " pad " << g.pad_top << "," << g.pad_left << " threads " << nth);
    const auto x = random_floats(g.batch * g.in_h * g.in_w * g.in_channels, 1);
    const auto w = random_floats(g.in_channels * g.group_outputs() * g.kernel_h * g.kernel_w, 2);
    const auto bias = random_floats(g.out_channels, 3);
    const Expected expected(g, x.data(), w.data(), has_bias ? bias.data() : nullptr);
    const auto filters = packed_filters(g, w.data());
    for (const auto side : {Guarded::Side::front, Guarded::Side::back}) {
        Guarded last(x, side), packed(filters, side), biases(bias, side), plain(w, side),
            first(channels_first(x, g.batch, g.in_channels), side);
        const std::vector<float> nothing(expected.sums.size(), NAN);
        Guarded to_last(nothing, side), to_first(nothing, side);
        if (has_bias) g.bias = biases.data();
        g.x = last.data(), g.y = to_last.data();
        for (int ith = 0; ith < nth; ++ith) nhwc_conv_transpose2d_f32(g, packed.data(), ith, nth);
        expected.expect(to_last.data());
        g.x = first.data(), g.y = to_first.data(), g.w = plain.data();
        for (int ith = 0; ith < nth; ++ith) conv_transpose2d_f32(g, ith, nth);
        const std::vector<float> y(to_first.data(), to_first.data() + nothing.size());
        expected.expect(channels_last(y, g.batch, g.out_channels).data());
    }
}

// What stays of the output after cutting pad off each side, and `more` is added below and right.
ConvTranspose2dArgs with_output(ConvTranspose2dArgs g, size_t more) {
    const auto extent = [&](size_t in, size_t stride, size_t kernel, size_t dilation, ptrdiff_t pad) {
        return (in - 1) * stride + (kernel - 1) * dilation + 1 - 2 * static_cast<size_t>(pad) + more;
    };
    g.out_h = extent(g.in_h, g.stride_h, g.kernel_h, g.dilation_h, g.pad_top);
    g.out_w = extent(g.in_w, g.stride_w, g.kernel_w, g.dilation_w, g.pad_left);
    return g;
}

TEST(ConvTranspose2dF32, PlacesFiltersThatTileTheOutput) {
    for_each_target([] {
        size_t turn = 0;
        for (const size_t kernel : {1, 2, 3})
            for (const size_t channels : {1, 7, 70})
                expect_result(with_output({.batch = 2,
                                           .in_channels = 2 * channels + 1,
                                           .in_h = 3,
                                           .in_w = 5,
                                           .out_channels = channels,
                                           .kernel_h = kernel,
                                           .kernel_w = kernel,
                                           .stride_h = kernel,
                                           .stride_w = kernel},
                                          0),
                              turn % 2 == 0, testing::thread_count(turn)),
                    ++turn;
    });
}

TEST(ConvTranspose2dF32, AddsFiltersThatOverlapOrLeaveGapsInEveryGroup) {
    for_each_target([] {
        size_t turn = 0;
        for (const size_t kernel : {1, 3, 4})
            for (const size_t stride : {1, 2, 5})
                for (const size_t dilation : {1, 2})
                    for (const size_t groups : {1, 2, 12}) {
                        const size_t pad = std::min<size_t>(turn % 3, (kernel - 1) * dilation / 2);
                        expect_result(with_output({.batch = 1 + turn % 2,
                                                   .in_channels = 12,
                                                   .in_h = 4,
                                                   .in_w = 3 + turn % 5,
                                                   .out_channels = 36,
                                                   .groups = groups,
                                                   .kernel_h = kernel,
                                                   .kernel_w = 1 + turn % kernel,
                                                   .stride_h = stride,
                                                   .stride_w = 1 + turn % stride,
                                                   .dilation_h = dilation,
                                                   .dilation_w = 1,
                                                   .pad_top = static_cast<ptrdiff_t>(pad)},
                                                  turn % stride),
                                      turn % 2 == 0, testing::thread_count(turn));
                        ++turn;
                    }
    });
}

TEST(ConvTranspose2dF32, CutsColumnsOffAndTakesWideRowsInPieces) {
    for_each_target([] {
        for (const ptrdiff_t pad : {0, 1, 2})
            expect_result(with_output({.in_channels = 5,
                                       .in_h = 2,
                                       .in_w = 300,
                                       .out_channels = 33,
                                       .kernel_h = 4,
                                       .kernel_w = 4,
                                       .stride_h = 2,
                                       .stride_w = 2,
                                       .pad_top = pad,
                                       .pad_left = pad},
                                      1),
                          true, 2);
    });
}

TEST(ConvTranspose2dF32, TakesTheTapsOfALargeFilterInPieces) {
    for_each_target([] {
        expect_result(with_output({.in_channels = 2,
                                   .in_h = 2,
                                   .in_w = 600,
                                   .out_channels = 3,
                                   .kernel_h = 30,
                                   .kernel_w = 31,
                                   .stride_h = 2},
                                  0),
                      true, 1);
    });
}

TEST(ConvTranspose2dF32, KeepsFewProductsOfALargeFilter) {
    ConvTranspose2dArgs g = with_output(
        {.in_channels = 1, .in_h = 1, .in_w = 4000, .out_channels = 1, .kernel_h = 64, .kernel_w = 64}, 0);
    const auto x = random_floats(g.in_w, 1), w = random_floats(g.taps(), 2);
    std::vector<float> y(g.out_h * g.out_w);
    g.x = x.data(), g.w = w.data(), g.y = y.data();
    if (!testing::reset_peak_memory()) GTEST_SKIP() << "this system does not count the most memory anew";
    const std::size_t before = testing::peak_memory_kib();
    conv_transpose2d_f32(g, 0, 1);
    EXPECT_LT(testing::peak_memory_kib(), before + 32 * 1024) << "all products are 64 MiB";
}

TEST(ConvTranspose2dF32, KeepsNaNAndInfinityWhereTheyReach) {
    ConvTranspose2dArgs g = with_output(
        {.in_channels = 1, .in_h = 1, .in_w = 4, .out_channels = 1, .kernel_w = 2, .stride_w = 1}, 0);
    const float kInf = std::numeric_limits<float>::infinity();
    const std::vector<float> x{1, NAN, 1, kInf}, w{1, 2};
    const auto filters = packed_filters(g, w.data());
    Guarded packed(filters, Guarded::Side::front);
    std::vector<float> y(g.out_w);
    g.x = x.data(), g.y = y.data();
    g.w = w.data();
    for (const bool nhwc : {false, true}) {  // of one channel, so that they lie alike
        if (nhwc)
            nhwc_conv_transpose2d_f32(g, packed.data(), 0, 1);
        else
            conv_transpose2d_f32(g, 0, 1);
        EXPECT_EQ(y[0], 1);
        EXPECT_TRUE(std::isnan(y[1]) && std::isnan(y[2]));
        EXPECT_EQ(y[3], kInf);
        EXPECT_EQ(y[4], kInf);
    }
}

}  // namespace
}  // namespace headrace::kernels
