#include "kernels/conv/nhwc_bf16_conv2d.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/half.h"
#include "kernels/conv/conv_case.h"
#include "kernels/each_target.h"
#include "kernels/gemm/bf16_gemm_f32.h"

namespace headrace::kernels {
namespace {

using testing::ConvShape;
using testing::Guarded;
using testing::Residual;
using testing::with_3x3;

struct NhwcBf16Conv2d : ::testing::Test {
    void SetUp() override {
        if (!has_bf16_gemm()) GTEST_SKIP() << "this processor does not multiply bf16";
    }
};
struct NhwcBf16WinogradConv2d : NhwcBf16Conv2d {};

enum class Kernel { windows, winograd };

// A convolution whose operands bf16 holds, with channels first.
struct RoundedCase {
    Conv2dArgs args;
    std::vector<float> x, w, bias, residual;

    explicit RoundedCase(const ConvShape& s, Activation activation = Activation::none,
                         Residual place = Residual::none) {
        Conv2dArgs& g = args;
        g.batch = s.batch, g.in_channels = s.in_channels, g.in_h = s.in_h, g.in_w = s.in_w;
        g.out_channels = s.out_channels, g.groups = s.groups;
        g.kernel_h = s.kernel_h, g.kernel_w = s.kernel_w, g.stride_h = s.stride_h, g.stride_w = s.stride_w;
        g.dilation_h = s.dilation_h, g.dilation_w = s.dilation_w, g.pad_top = s.pad_top,
        g.pad_left = s.pad_left;
        g.out_h = testing::out_extent(s.in_h, s.pad_top + s.pad_bottom, s.kernel_h, s.stride_h, s.dilation_h);
        g.out_w = testing::out_extent(s.in_w, s.pad_left + s.pad_right, s.kernel_w, s.stride_w, s.dilation_w);
        x = rounded(s.batch * s.in_channels * s.in_h * s.in_w, 1);
        w = rounded(s.out_channels * depth(), 2);
        bias = testing::random_floats(s.out_channels, 3);
        residual = testing::random_floats(s.batch * s.out_channels * g.out_h * g.out_w, 4);
        g.x = x.data(), g.w = w.data(), g.bias = bias.data();
        if (place != Residual::none) g.residual = residual.data();
        g.residual_first = place == Residual::first;
        g.activation = activation, g.clamp_min = -0.5f, g.clamp_max = 0.5f;
    }

    size_t depth() const { return args.in_channels / args.groups * args.kernel_h * args.kernel_w; }

    static std::vector<float> rounded(size_t count, unsigned seed) {
        std::vector<float> values = testing::random_floats(count, seed);
        for (float& v : values) v = bfloat_to_float(float_to_bfloat(v));
        return values;
    }

    // With channels first again.
    std::vector<float> result(Kernel kernel, int nth, Guarded::Side side) const {
        Conv2dArgs g = args;
        const size_t in_pixels = g.in_h * g.in_w, pixels = g.out_h * g.out_w, taps = g.kernel_h * g.kernel_w;
        const size_t in = g.in_channels / g.groups;
        Guarded last(testing::channels_last(g.x, g.batch, g.in_channels, in_pixels), side);
        Guarded y(std::vector<float>(g.batch * g.out_channels * pixels, NAN), side);
        std::vector<float> added;
        if (g.residual) added = testing::channels_last(g.residual, g.batch, g.out_channels, pixels);
        const size_t bytes = kernel == Kernel::winograd
                                 ? packed_bf16_winograd_filter_bytes(in, g.out_channels, g.groups)
                                 : packed_bf16_filter_bytes(g.out_channels, g.groups, depth());
        Guarded packed(std::vector<float>(bytes / sizeof(float)), side);
        auto* filters = reinterpret_cast<std::uint16_t*>(packed.data());
        if (kernel == Kernel::winograd)
            pack_bf16_winograd_filters(testing::taps_first(g.w, g.out_channels, in).data(), in,
                                       g.out_channels, g.groups, filters);
        else
            pack_bf16_filters(testing::channels_last(g.w, g.out_channels, in, taps).data(), g.out_channels,
                              g.groups, depth(), filters);
        g.x = last.data(), g.w = nullptr, g.y = y.data(), g.residual = g.residual ? added.data() : nullptr;
        for (int ith = 0; ith < nth; ++ith) {
            if (kernel == Kernel::winograd)
                nhwc_bf16_winograd_conv2d(g, filters, ith, nth);
            else
                nhwc_bf16_conv2d(g, filters, ith, nth);
        }
        return testing::channels_last(y.data(), g.batch, pixels, g.out_channels);
    }

    double expected(size_t at) const {
        const Conv2dArgs& g = args;
        const size_t pixels = g.out_h * g.out_w, plane = at / pixels, pixel = at % pixels;
        double sum = testing::exact_convolution(g, plane / g.out_channels, plane % g.out_channels,
                                                pixel / g.out_w, pixel % g.out_w);
        if (g.residual && g.residual_first) sum += residual[at];
        if (g.activation == Activation::relu) sum = std::max(sum, 0.0);
        if (g.activation == Activation::clamp) sum = std::clamp(sum, -0.5, 0.5);
        return g.residual && !g.residual_first ? sum + residual[at] : sum;
    }

    // tolerance: of a sum with one term.
    void expect(Kernel kernel, int nth, double tolerance) const {
        SCOPED_TRACE(::testing::Message()
                     << "in " << args.batch << "x" << args.in_channels << "x" << args.in_h << "x" << args.in_w
                     << " out " << args.out_channels << " groups " << args.groups << " kernel "
                     << args.kernel_h << "x" << args.kernel_w << " threads " << nth);
        const auto side = nth % 2 ? Guarded::Side::front : Guarded::Side::back;
        const std::vector<float> y = result(kernel, nth, side);
        const double most = tolerance * std::sqrt(static_cast<double>(depth()));
        for (size_t at = 0; at < y.size(); ++at) ASSERT_NEAR(y[at], expected(at), most) << "at " << at;
    }
};

constexpr double kSumOfF32 = 3e-6;

TEST_F(NhwcBf16Conv2d, MultipliesWhatBf16HoldsExactly) {
    int nth = 1;
    for (const size_t kernel : {1, 3, 5})
        for (const size_t stride : {1, 2})
            for (const size_t dilation : {1, 2})
                for (const size_t channels : {3, 16, 37}) {
                    const auto pad = static_cast<ptrdiff_t>(kernel / 2);
                    RoundedCase({.batch = 2,
                                 .in_channels = channels,
                                 .in_h = 13,
                                 .in_w = 17,
                                 .out_channels = 83 - channels,
                                 .kernel_h = kernel,
                                 .kernel_w = kernel,
                                 .stride_h = stride,
                                 .stride_w = stride,
                                 .dilation_h = dilation,
                                 .dilation_w = dilation,
                                 .pad_top = pad,
                                 .pad_left = pad,
                                 .pad_bottom = pad,
                                 .pad_right = 1})
                        .expect(Kernel::windows, nth++ % 4 + 1, kSumOfF32);
                }
}

// Strips of rows, slices of depth, and panels of columns.
TEST_F(NhwcBf16Conv2d, GoesThroughManyPixelsDeepWindowsAndWideFilters) {
    for (const int nth : testing::kThreadCounts) {
        RoundedCase(
            {.in_channels = 130, .in_h = 9, .in_w = 9, .out_channels = 20, .kernel_h = 3, .kernel_w = 3})
            .expect(Kernel::windows, nth, kSumOfF32);
        RoundedCase({.in_channels = 24, .in_h = 25, .in_w = 24, .out_channels = 144})
            .expect(Kernel::windows, nth, kSumOfF32);
        RoundedCase(
            {.in_channels = 5, .in_h = 1, .in_w = 401, .out_channels = 33, .kernel_w = 4, .pad_left = 2})
            .expect(Kernel::windows, nth, kSumOfF32);
    }
}

TEST_F(NhwcBf16Conv2d, AppliesEveryActivationBeforeOrAfterTheResidual) {
    int nth = 1;
    for (const Activation activation : {Activation::none, Activation::relu, Activation::clamp})
        for (const Residual residual : {Residual::none, Residual::last, Residual::first})
            for (const size_t groups : {1, 2})
                for (const Kernel kernel : {Kernel::windows, Kernel::winograd})
                    RoundedCase(
                        with_3x3(
                            {.in_channels = 36, .in_h = 7, .in_w = 9, .out_channels = 34, .groups = groups}),
                        activation, residual)
                        .expect(kernel, nth++ % 4 + 1, kernel == Kernel::windows ? kSumOfF32 : 0.01);
}

// What is transformed has more digits than bf16.
TEST_F(NhwcBf16WinogradConv2d, IsWithinTheRoundingOfTransformedOperands) {
    size_t turn = 0;
    for (const size_t height : {3, 7, 12})
        for (const size_t width : {6, 9, 31})
            for (const ptrdiff_t pad : {0, 1}) {
                ++turn;
                RoundedCase({.batch = 1 + turn % 2,
                             .in_channels = 5 + 7 * (turn % 9),
                             .in_h = height,
                             .in_w = width,
                             .out_channels = 3 + 7 * (turn % 13),
                             .kernel_h = 3,
                             .kernel_w = 3,
                             .pad_top = pad,
                             .pad_left = pad,
                             .pad_bottom = 1,
                             .pad_right = pad})
                    .expect(Kernel::winograd, static_cast<int>(turn % 5) + 1, 0.01);
            }
}

// Tiles are repeated window by window where they meet what is no number.
TEST_F(NhwcBf16WinogradConv2d, KeepsNaNAndInfinityInTheWindowsThatMeetThem) {
    constexpr float kInf = std::numeric_limits<float>::infinity();
    for (const float odd : {std::numeric_limits<float>::quiet_NaN(), kInf, -kInf}) {
        RoundedCase c(with_3x3({.in_channels = 40, .in_h = 9, .in_w = 9, .out_channels = 40}));
        c.x[17 * 81 + 4 * 9 + 3] = odd;
        c.x[3 * 81] = -odd;
        const auto side = Guarded::Side::back;
        const auto windows = c.result(Kernel::windows, 1, side), tiles = c.result(Kernel::winograd, 1, side);
        size_t odd_results = 0;
        for (size_t i = 0; i < tiles.size(); ++i) {
            odd_results += !std::isfinite(windows[i]);
            if (std::isfinite(windows[i]))
                ASSERT_NEAR(tiles[i], windows[i], 0.2) << odd << " at " << i;
            else if (std::isnan(windows[i]))
                ASSERT_TRUE(std::isnan(tiles[i])) << odd << " at " << i;
            else
                ASSERT_EQ(tiles[i], windows[i]) << odd << " at " << i;
        }
        EXPECT_EQ(odd_results, (9u + 4u) * 40u);
    }
}

}  // namespace
}  // namespace headrace::kernels
