#include "kernels/int8/quantize_f32.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "kernels/each_target.h"
#include "kernels/guarded.h"
#include "kernels/int8/max_pool_bytes.h"

namespace headrace::kernels {
namespace {

using testing::Guarded;

int rounded(float quotient, int zero, bool is_signed, int low = -128, int high = 255) {
    low = std::max(low, is_signed ? -128 : 0), high = std::min(high, is_signed ? 127 : 255);
    if (std::isnan(quotient)) return low;
    return static_cast<int>(
        std::clamp<double>(std::nearbyint(static_cast<double>(quotient)) + zero, low, high));
}
int element(const std::vector<std::uint8_t>& bytes, size_t i, bool is_signed) {
    return is_signed ? static_cast<std::int8_t>(bytes[i]) : int{bytes[i]};
}

constexpr size_t kLengths[] = {1, 7, 8, 63, 64, 130, 1000};

std::vector<std::uint8_t> drawn_bytes(size_t n, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<std::uint8_t> bytes(n);
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
    return bytes;
}

TEST(QuantizeF32, RoundsHalvesToEvenAndSaturates) {
    std::mt19937 random(1);
    for (const size_t n : kLengths) {
        std::vector<float> x(n);
        for (size_t i = 0; i < n; ++i)
            x[i] = i % 3 ? std::uniform_real_distribution<float>(-40, 40)(random)
                         : 0.25f * (static_cast<float>(i % 300) - 150.0f + 0.5f);  // halves
        const float ends[] = {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                              std::numeric_limits<float>::quiet_NaN(), 3e38f, -3e38f};
        for (size_t i = 0; i < std::min<size_t>(n, 5); ++i) x[n - 1 - i] = ends[i];
        testing::for_each_target([&] {
            for (const bool is_signed : {false, true})
                for (const int zero : {is_signed ? -128 : 0, 5, is_signed ? 127 : 255}) {
                    Guarded guarded(x, Guarded::Side::back);
                    std::vector<std::uint8_t> y(n, 77);
                    const int nth = testing::thread_count(n);
                    for (int ith = 0; ith < nth; ++ith)
                        quantize_f32(guarded.data(), 0.25f, zero, y.data(), is_signed, n, ith, nth);
                    for (size_t i = 0; i < n; ++i)
                        ASSERT_EQ(element(y, i, is_signed), rounded(x[i] / 0.25f, zero, is_signed))
                            << x[i] << " at " << i << " of " << n << " zero " << zero;
                }
        });
    }
}

TEST(QuantizeByRangeF32, HoldsAllNumbersAndZeroExactly) {
    std::mt19937 random(5);
    for (const auto& [low, high] : {std::pair(-3.0f, 5.0f), std::pair(1.0f, 7.0f), std::pair(-9.0f, -2.0f)})
        for (const size_t n : kLengths) {
            std::vector<float> x(n);
            for (float& value : x) value = std::uniform_real_distribution<float>(low, high)(random);
            const float least = std::min(0.0f, *std::ranges::min_element(x)),
                        most = std::max(0.0f, *std::ranges::max_element(x));
            testing::for_each_target([&] {
                Guarded guarded(x, Guarded::Side::back);
                std::vector<std::uint8_t> y(n, 77);
                float scale = 0;
                std::uint8_t zero = 0;
                const int nth = testing::thread_count(n);
                for (int ith = 0; ith < nth; ++ith)
                    quantize_by_range_f32(guarded.data(), y.data(), &scale, &zero, n, ith, nth);
                ASSERT_EQ(scale, (most - least) / 255.0f);
                ASSERT_EQ(zero, std::nearbyint(std::clamp(-least / scale, 0.0f, 255.0f)));
                for (size_t i = 0; i < n; ++i) ASSERT_EQ(int{y[i]}, rounded(x[i] / scale, zero, false));
            });
        }
}

TEST(QuantizeByRangeF32, KnowsNothingButZerosAndNaN) {
    EXPECT_EQ(byte_range_of(0, 0).scale, 1.0f);
    testing::for_each_target([&] {
        std::vector<float> x(70, 2.0f);
        x[37] = std::numeric_limits<float>::quiet_NaN();
        std::vector<std::uint8_t> y(x.size(), 77);
        float scale = 0;
        std::uint8_t zero = 77;
        quantize_by_range_f32(x.data(), y.data(), &scale, &zero, x.size(), 0, 1);
        EXPECT_TRUE(std::isnan(scale));
        EXPECT_EQ(zero, 0);
        EXPECT_EQ(std::ranges::count(y, std::uint8_t{0}), std::ssize(y));
    });
}

TEST(DequantizeF32, TakesTheZeroPointAwayBeforeItMultiplies) {
    for (const size_t n : kLengths) {
        const std::vector<std::uint8_t> x = drawn_bytes(n, 2);
        testing::for_each_target([&] {
            for (const bool is_signed : {false, true})
                for (const int zero : {is_signed ? -128 : 0, 5, is_signed ? 127 : 255}) {
                    Guarded y(std::vector<float>(n, NAN), Guarded::Side::back);
                    const int nth = testing::thread_count(n);
                    for (int ith = 0; ith < nth; ++ith)
                        dequantize_f32({x.data(), is_signed}, 0.3f, zero, y.data(), n, ith, nth);
                    for (size_t i = 0; i < n; ++i)
                        ASSERT_EQ(y.data()[i], static_cast<float>(element(x, i, is_signed) - zero) * 0.3f);
                }
        });
    }
}

TEST(Int8Add, RoundsAtEachStep) {
    const auto single = [](double x) { return double{static_cast<float>(x)}; };
    for (const size_t n : kLengths) {
        const std::vector<std::uint8_t> a = drawn_bytes(n, 3), b = drawn_bytes(n, 4);
        testing::for_each_target([&] {
            for (const bool signed_a : {false, true})
                for (const bool signed_b : {false, true})
                    for (const bool signed_y : {false, true}) {
                        std::vector<std::uint8_t> y(n, 77);
                        const Int8AddArgs args{.a = {a.data(), signed_a},
                                               .b = {b.data(), signed_b},
                                               .a_ratio = 1.2f,
                                               .b_ratio = 0.7f,
                                               .shift = -40.3f,
                                               .low = signed_y ? -90 : 7,
                                               .high = signed_y ? 120 : 250,
                                               .y = y.data(),
                                               .is_signed = signed_y,
                                               .n = n};
                        const int nth = testing::thread_count(n);
                        for (int ith = 0; ith < nth; ++ith) int8_add(args, ith, nth);
                        for (size_t i = 0; i < n; ++i) {
                            const double right =
                                single(single(element(b, i, signed_b) * double{0.7f}) + double{-40.3f});
                            const double sum = single(single(element(a, i, signed_a) * double{1.2f}) + right);
                            ASSERT_EQ(element(y, i, signed_y),
                                      rounded(static_cast<float>(sum), 0, signed_y, args.low, args.high));
                        }
                    }
        });
    }
}

TEST(MaxPoolBytes, FindsTheLargestElementInTheImage) {
    constexpr size_t kBatch = 2, kHeight = 9, kWidth = 7;
    for (const size_t channels : {1, 15, 64, 130}) {
        const std::vector<std::uint8_t> x = drawn_bytes(kBatch * kHeight * kWidth * channels, 5);
        Pool2dArgs g{.is_max = true, .channels_last = true, .batch = kBatch, .channels = channels};
        g.in_h = kHeight, g.in_w = kWidth, g.out_h = 5, g.out_w = 5;
        g.window_h = 3, g.window_w = 2, g.stride_h = 2, g.stride_w = 2, g.dilation_h = 2, g.pad_top = 3,
        g.pad_left = 2;
        testing::for_each_target([&] {
            for (const bool is_signed : {false, true}) {
                std::vector<std::uint8_t> y(kBatch * g.out_h * g.out_w * channels, 77);
                for (int ith = 0; ith < 3; ++ith) max_pool_bytes(g, {x.data(), is_signed}, y.data(), ith, 3);
                for (size_t at = 0; at < y.size(); ++at) {
                    const size_t c = at % channels, pixel = at / channels;
                    int largest = is_signed ? -128 : 0;
                    for (ptrdiff_t ky = 0; ky < 3; ++ky)
                        for (ptrdiff_t kx = 0; kx < 2; ++kx) {
                            const ptrdiff_t row =
                                static_cast<ptrdiff_t>(pixel / g.out_w % g.out_h * 2) + 2 * ky - 3;
                            const ptrdiff_t column = static_cast<ptrdiff_t>(pixel % g.out_w * 2) + kx - 2;
                            if (row < 0 || column < 0 || row >= ptrdiff_t{kHeight} ||
                                column >= ptrdiff_t{kWidth})
                                continue;
                            const size_t from =
                                (pixel / g.out_w / g.out_h * kHeight + static_cast<size_t>(row)) * kWidth +
                                static_cast<size_t>(column);
                            largest = std::max(largest, element(x, from * channels + c, is_signed));
                        }
                    ASSERT_EQ(element(y, at, is_signed), largest) << "element " << at;
                }
            }
        });
    }
}

}  // namespace
}  // namespace headrace::kernels
