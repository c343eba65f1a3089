#include "kernels/int8/int8_conv2d.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/each_target.h"
#include "kernels/guarded.h"
#include "kernels/int8/byte_quads.h"
#include "kernels/int8/int8_winograd_conv2d.h"

namespace headrace::kernels {
namespace {

using testing::Guarded;

struct Int8Shape {
    size_t batch = 1, in_channels = 1, in_h = 1, in_w = 1, out_channels = 1, groups = 1, kernel_h = 1,
           kernel_w = 1;
    size_t stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
    ptrdiff_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
};

/// What the numbers are drawn from: up to the ends of their types.
struct Int8Types {
    bool signed_x = false, wide_filter = false, signed_y = false;
    int x_zero = 0, y_zero = 0, low = -128, high = 255;
    bool has_bias = true, is_extreme = false;
};

size_t extent(size_t in, ptrdiff_t pads, size_t kernel, size_t stride, size_t dilation) {
    return (static_cast<size_t>(static_cast<ptrdiff_t>(in) + pads) - ((kernel - 1) * dilation + 1)) / stride +
           1;
}

/// Bytes between pages that must not be touched, in integer floats from the side that is not guarded.
class GuardedBytes {
public:
    GuardedBytes(const std::vector<std::uint8_t>& bytes, Guarded::Side side)
        : floats_(std::vector<float>((bytes.size() + 3) / 4), side),
          skip_(side == Guarded::Side::back ? (bytes.size() + 3) / 4 * 4 - bytes.size() : 0) {
        std::copy(bytes.begin(), bytes.end(), data());
    }
    std::uint8_t* data() { return reinterpret_cast<std::uint8_t*>(floats_.data()) + skip_; }

private:
    Guarded floats_;
    size_t skip_;
};

/// A kernel with its form of the filters.
struct Form {
    const char* name;
    bool (*applies)(const Int8Conv2dArgs&, bool wide);
    size_t (*bytes)(const Int8Conv2dArgs&);
    void (*pack)(const Int8Conv2dArgs&, const std::vector<int>& w, bool wide, std::byte* to);
    void (*run)(const Int8Conv2dArgs&, const std::byte* packed, int ith, int nth);
};

template <class Pack>
void pack_as(const std::vector<int>& w, bool wide, Pack pack) {
    if (wide)
        pack(std::vector<std::int16_t>(w.begin(), w.end()).data());
    else
        pack(std::vector<std::int8_t>(w.begin(), w.end()).data());
}

const Form kForms[] = {
    {"windows", [](const Int8Conv2dArgs&, bool) { return true; },
     [](const Int8Conv2dArgs& g) {
         return packed_pairs_bytes(g.out_channels, g.groups, g.depth(), sizeof(std::int16_t));
     },
     [](const Int8Conv2dArgs& g, const std::vector<int>& w, bool wide, std::byte* to) {
         pack_as(w, wide, [&](const auto* p) {
             pack_pairs<std::int16_t>(p, g.out_channels, g.groups, g.depth(), to);
         });
     },
     &int8_conv2d},
    {"depthwise",
     [](const Int8Conv2dArgs& g, bool) { return g.groups == g.in_channels && g.groups == g.out_channels; },
     [](const Int8Conv2dArgs& g) {
         return packed_depthwise_pairs_bytes(g.out_channels, g.kernel_h, g.kernel_w);
     },
     [](const Int8Conv2dArgs& g, const std::vector<int>& w, bool wide, std::byte* to) {
         pack_as(w, wide,
                 [&](const auto* p) { pack_depthwise_pairs(p, g.out_channels, g.kernel_h, g.kernel_w, to); });
     },
     &int8_depthwise_conv2d},
    {"quads", [](const Int8Conv2dArgs&, bool wide) { return !wide && has_byte_quads(); },
     [](const Int8Conv2dArgs& g) { return packed_quads_bytes(g.out_channels, g.groups, g.depth()); },
     [](const Int8Conv2dArgs& g, const std::vector<int>& w, bool, std::byte* to) {
         const std::vector<std::int8_t> bytes(w.begin(), w.end());
         pack_quads(bytes.data(), g.out_channels, g.groups, g.depth(), to);
     },
     &quad_conv2d},
    {"depthwise quads",
     [](const Int8Conv2dArgs& g, bool wide) {
         return !wide && g.groups == g.in_channels && g.groups == g.out_channels && has_quad_depthwise(g) &&
                has_byte_quads();
     },
     [](const Int8Conv2dArgs& g) { return packed_depthwise_quads_bytes(g.out_channels); },
     [](const Int8Conv2dArgs& g, const std::vector<int>& w, bool, std::byte* to) {
         const std::vector<std::int8_t> bytes(w.begin(), w.end());
         pack_depthwise_quads(bytes.data(), g.out_channels, to);
     },
     &quad_depthwise_conv2d},
    {"transformed filters", [](const Int8Conv2dArgs& g, bool) { return has_int8_winograd_conv2d(g); },
     [](const Int8Conv2dArgs& g) { return packed_int8_winograd_bytes(g.in_channels, g.out_channels); },
     [](const Int8Conv2dArgs& g, const std::vector<int>& w, bool wide, std::byte* to) {
         pack_as(w, wide, [&](const auto* p) { pack_int8_winograd(p, g.in_channels, g.out_channels, to); });
     },
     &int8_winograd_conv2d}};

class Int8Case {
public:
    Int8Case(const Int8Shape& s, const Int8Types& t) : t_(t) {
        g_ = {.batch = s.batch,
              .in_channels = s.in_channels,
              .in_h = s.in_h,
              .in_w = s.in_w,
              .out_channels = s.out_channels,
              .out_h = extent(s.in_h, s.pad_top + s.pad_bottom, s.kernel_h, s.stride_h, s.dilation_h),
              .out_w = extent(s.in_w, s.pad_left + s.pad_right, s.kernel_w, s.stride_w, s.dilation_w),
              .groups = s.groups,
              .kernel_h = s.kernel_h,
              .kernel_w = s.kernel_w,
              .stride_h = s.stride_h,
              .stride_w = s.stride_w,
              .dilation_h = s.dilation_h,
              .dilation_w = s.dilation_w,
              .pad_top = s.pad_top,
              .pad_left = s.pad_left,
              .x_zero = t.x_zero};
        std::mt19937 random(static_cast<unsigned>(s.in_channels * 31 + s.out_channels));
        const int x_low = t.signed_x ? -128 : 0, w_most = t.wide_filter ? 255 : 128;
        for (size_t i = 0; i < s.batch * s.in_h * s.in_w * s.in_channels; ++i)
            x_.push_back(drawn(random, x_low, x_low + 255));
        for (size_t i = 0; i < s.out_channels * g_.depth(); ++i)
            w_.push_back(drawn(random, -w_most, t.wide_filter ? 255 : 127));
        const double spread = 100.0 * w_most * std::sqrt(static_cast<double>(g_.depth()));
        for (size_t o = 0; o < s.out_channels; ++o) {
            bias_.push_back(std::uniform_real_distribution<float>(-1000, 1000)(random));
            scale_.push_back(std::uniform_real_distribution<float>(20, 90)(random) /
                             static_cast<float>(spread));
        }
    }

    void expect_exact(int nth, Guarded::Side side) {
        GuardedBytes x(bytes_of(x_), side), y(std::vector<std::uint8_t>(outputs(), 77), side);
        Guarded bias(bias_, side), scale(scale_, side);
        Int8Conv2dArgs g = g_;
        g.x = {x.data(), t_.signed_x};
        g.result = {.bias = t_.has_bias ? bias.data() : nullptr,
                    .scale = scale.data(),
                    .zero = t_.y_zero,
                    .low = std::max(t_.low, t_.signed_y ? -128 : 0),
                    .high = std::min(t_.high, t_.signed_y ? 127 : 255),
                    .y = y.data(),
                    .is_signed = t_.signed_y};
        for (const Form& form : kForms) {
            if (!form.applies(g, t_.wide_filter)) continue;
            SCOPED_TRACE(form.name);
            std::fill_n(y.data(), outputs(), std::uint8_t{77});
            Guarded packed(packed_floats(form), side);
            for (int ith = 0; ith < nth; ++ith)
                form.run(g, reinterpret_cast<const std::byte*>(packed.data()), ith, nth);
            compare(g, y.data());
        }
    }

private:
    int drawn(std::mt19937& random, int low, int high) const {
        if (t_.is_extreme) return random() % 8 ? high : low;
        return std::uniform_int_distribution<int>(low, high)(random);
    }
    size_t outputs() const { return g_.batch * g_.out_h * g_.out_w * g_.out_channels; }
    static std::vector<std::uint8_t> bytes_of(const std::vector<int>& numbers) {
        std::vector<std::uint8_t> bytes;
        for (int number : numbers) bytes.push_back(static_cast<std::uint8_t>(number));
        return bytes;
    }

    std::vector<float> packed_floats(const Form& form) const {
        std::vector<float> packed((form.bytes(g_) + sizeof(float) - 1) / sizeof(float));
        form.pack(g_, w_, t_.wide_filter, reinterpret_cast<std::byte*>(packed.data()));
        return packed;
    }

    std::int64_t sum(const Int8Conv2dArgs& g, size_t image, size_t o, size_t oy, size_t ox) const {
        const size_t of_group = g.in_channels / g.groups, group = o / (g.out_channels / g.groups);
        std::int64_t total = 0;
        for (size_t ky = 0; ky < g.kernel_h; ++ky)
            for (size_t kx = 0; kx < g.kernel_w; ++kx) {
                const ptrdiff_t y = static_cast<ptrdiff_t>(oy * g.stride_h + ky * g.dilation_h) - g.pad_top;
                const ptrdiff_t x = static_cast<ptrdiff_t>(ox * g.stride_w + kx * g.dilation_w) - g.pad_left;
                if (y < 0 || x < 0 || y >= static_cast<ptrdiff_t>(g.in_h) ||
                    x >= static_cast<ptrdiff_t>(g.in_w))
                    continue;
                const size_t pixel =
                    (image * g.in_h + static_cast<size_t>(y)) * g.in_w + static_cast<size_t>(x);
                for (size_t i = 0; i < of_group; ++i)
                    total += (x_[pixel * g.in_channels + group * of_group + i] - g.x_zero) *
                             std::int64_t{w_[((o * g.kernel_h + ky) * g.kernel_w + kx) * of_group + i]};
            }
        return total;
    }

    void compare(const Int8Conv2dArgs& g, const std::uint8_t* y) const {
        for (size_t at = 0; at < outputs(); ++at) {
            const size_t o = at % g.out_channels, pixel = at / g.out_channels;
            const auto total = static_cast<float>(
                sum(g, pixel / g.out_w / g.out_h, o, pixel / g.out_w % g.out_h, pixel % g.out_w));
            const float real = (g.result.bias ? total + g.result.bias[o] : total) * g.result.scale[o];
            const double integer = std::nearbyint(static_cast<double>(real)) + g.result.zero;
            const auto expected = static_cast<int>(std::clamp<double>(integer, g.result.low, g.result.high));
            const int actual = t_.signed_y ? static_cast<std::int8_t>(y[at]) : int{y[at]};
            ASSERT_EQ(actual, expected) << "at " << at;
        }
    }

    Int8Types t_;
    Int8Conv2dArgs g_;
    std::vector<int> x_, w_;
    std::vector<float> bias_, scale_;
};

const Int8Shape kConvolutionShapes[] = {
    {.in_channels = 1, .out_channels = 1},
    {.in_channels = 3,
     .in_h = 9,
     .in_w = 11,
     .out_channels = 17,
     .kernel_h = 3,
     .kernel_w = 3,
     .stride_h = 2,
     .stride_w = 2,
     .pad_top = 1,
     .pad_left = 1,
     .pad_bottom = 1,
     .pad_right = 1},
    {.in_channels = 3,
     .in_h = 13,
     .in_w = 15,
     .out_channels = 16,
     .kernel_h = 7,
     .kernel_w = 7,
     .stride_h = 2,
     .stride_w = 2,
     .pad_top = 3,
     .pad_left = 3,
     .pad_bottom = 2,
     .pad_right = 2},
    {.batch = 2, .in_channels = 24, .in_h = 7, .in_w = 9, .out_channels = 40},
    {.in_channels = 33, .in_h = 5, .in_w = 5, .out_channels = 15, .stride_h = 2, .stride_w = 2},
    {.in_channels = 130,
     .in_h = 6,
     .in_w = 9,
     .out_channels = 34,
     .kernel_h = 3,
     .kernel_w = 3,
     .pad_top = 1,
     .pad_left = 1,
     .pad_bottom = 1,
     .pad_right = 1},
    {.in_channels = 12,
     .in_h = 8,
     .in_w = 7,
     .out_channels = 21,
     .groups = 3,
     .kernel_h = 3,
     .kernel_w = 2,
     .dilation_h = 2,
     .dilation_w = 3,
     .pad_left = 2,
     .pad_right = 1},
    {.in_channels = 19, .in_w = 101, .out_channels = 70},
    // Windows of 3 x 3 for which filters are transformed: odd sizes, channels and pads.
    {.batch = 2,
     .in_channels = 16,
     .in_h = 9,
     .in_w = 8,
     .out_channels = 17,
     .kernel_h = 3,
     .kernel_w = 3,
     .pad_top = 1,
     .pad_bottom = 1},
    {.in_channels = 35,
     .in_h = 19,
     .in_w = 15,
     .out_channels = 40,
     .kernel_h = 3,
     .kernel_w = 3,
     .pad_top = 1,
     .pad_left = 2,
     .pad_bottom = 0,
     .pad_right = 1},
    {.in_channels = 528,
     .in_h = 8,
     .in_w = 8,
     .out_channels = 18,
     .kernel_h = 3,
     .kernel_w = 3,
     .pad_top = 1,
     .pad_left = 1,
     .pad_bottom = 1,
     .pad_right = 1},
    {.in_channels = 1,
     .in_h = 20,
     .in_w = 3,
     .out_channels = 3,
     .kernel_h = 5,
     .kernel_w = 5,
     .pad_top = 2,
     .pad_left = 2,
     .pad_bottom = 2,
     .pad_right = 2},
    // Depthwise: vectors of channels and what is left, neighbours, steps, windows beyond the image.
    {.batch = 2,
     .in_channels = 21,
     .in_h = 9,
     .in_w = 19,
     .out_channels = 21,
     .groups = 21,
     .kernel_h = 3,
     .kernel_w = 3,
     .pad_top = 1,
     .pad_left = 1,
     .pad_bottom = 1,
     .pad_right = 1},
    {.in_channels = 32,
     .in_h = 11,
     .in_w = 37,
     .out_channels = 32,
     .groups = 32,
     .kernel_h = 3,
     .kernel_w = 3,
     .stride_h = 2,
     .stride_w = 2,
     .pad_top = 1,
     .pad_left = 1,
     .pad_bottom = 1,
     .pad_right = 1},
    {.in_channels = 9,
     .in_h = 7,
     .in_w = 7,
     .out_channels = 9,
     .groups = 9,
     .kernel_h = 5,
     .kernel_w = 5,
     .pad_top = 2,
     .pad_left = 2,
     .pad_bottom = 2,
     .pad_right = 2},
    {.in_channels = 5,
     .in_h = 3,
     .in_w = 2,
     .out_channels = 5,
     .groups = 5,
     .kernel_h = 4,
     .kernel_w = 6,
     .dilation_h = 2,
     .pad_top = 5,
     .pad_left = 7,
     .pad_bottom = 4,
     .pad_right = 6},
    // More than a block of 64 channels, and of the last block as many as it holds, more and fewer.
    {.in_channels = 80,
     .in_h = 5,
     .in_w = 34,
     .out_channels = 80,
     .groups = 80,
     .kernel_h = 3,
     .kernel_w = 3,
     .pad_top = 1,
     .pad_left = 2,
     .pad_bottom = 1,
     .pad_right = 1},
    {.batch = 2,
     .in_channels = 105,
     .in_h = 7,
     .in_w = 6,
     .out_channels = 105,
     .groups = 105,
     .kernel_h = 3,
     .kernel_w = 3,
     .stride_h = 1,
     .stride_w = 2,
     .dilation_h = 2,
     .pad_left = 1},
    {.in_channels = 152,
     .in_h = 4,
     .in_w = 3,
     .out_channels = 152,
     .groups = 152,
     .kernel_h = 3,
     .kernel_w = 3,
     .pad_top = 2,
     .pad_left = 3,
     .pad_bottom = 2,
     .pad_right = 3},
    {.in_channels = 8,
     .in_h = 12,
     .in_w = 9,
     .out_channels = 8,
     .groups = 8,
     .kernel_h = 2,
     .kernel_w = 1,
     .dilation_h = 3,
     .pad_bottom = 2,
     .pad_right = 3},
};

void expect_exact_convolutions(const Int8Types& types) {
    testing::for_each_target([&] {
        size_t turn = 0;
        for (const Int8Shape& shape : kConvolutionShapes) {
            SCOPED_TRACE(::testing::Message() << "shape " << turn);
            const int nth = testing::thread_count(turn++);
            for (const auto side : {Guarded::Side::front, Guarded::Side::back})
                Int8Case(shape, types).expect_exact(nth, side);
        }
    });
}

TEST(Int8Conv2d, SumsUpExactlyForEachTypeOfBytes) {
    for (const bool signed_x : {false, true})
        for (const bool signed_y : {false, true})
            for (const bool wide : {false, true})
                expect_exact_convolutions({.signed_x = signed_x,
                                           .wide_filter = wide,
                                           .signed_y = signed_y,
                                           .x_zero = signed_x ? -5 : 117,
                                           .y_zero = signed_y ? 3 : 128,
                                           .has_bias = !wide});
}

TEST(Int8Conv2d, HasRoomForTheLargestNumbersOfBothSigns) {
    for (const int x_zero : {0, 255})
        for (const bool wide : {false, true})
            expect_exact_convolutions(
                {.wide_filter = wide, .x_zero = x_zero, .y_zero = x_zero, .is_extreme = true});
    for (const int x_zero : {-128, 127})
        expect_exact_convolutions(
            {.signed_x = true, .signed_y = true, .x_zero = x_zero, .y_zero = x_zero, .is_extreme = true});
}

TEST(Int8Conv2d, TransformsFiltersOnlyWhereSumsHaveRoom) {
    Int8Conv2dArgs g{.in_channels = 917,
                     .in_h = 16,
                     .in_w = 16,
                     .out_channels = 16,
                     .out_h = 14,
                     .out_w = 14,
                     .kernel_h = 3,
                     .kernel_w = 3,
                     .x = {},
                     .result = {}};
    EXPECT_TRUE(has_int8_winograd_conv2d(g));
    g.in_channels = 918;
    EXPECT_FALSE(has_int8_winograd_conv2d(g));
}

TEST(Int8Conv2d, KeepsResultsWithinLimits) {
    expect_exact_convolutions({.x_zero = 3, .y_zero = 100, .low = 100, .high = 180});
    expect_exact_convolutions({.signed_y = true, .x_zero = 3, .y_zero = -128, .low = -100, .high = 7});
}

}  // namespace
}  // namespace headrace::kernels
