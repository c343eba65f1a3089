#include "kernels/tensor/convert_f32.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/each_target.h"

namespace headrace::kernels {
namespace {

using testing::for_each_target;

// Floats of every exponent and sign, ties of both formats, and what overflows.
std::vector<float> all_kinds() {
    std::vector<float> x{0, -0.0f, 65504, 65519.9f, 65520, -65520, 2049, 2051, 1e-8f, 2.9802322e-8f, 6e-8f};
    for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 30'011)
        x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    for (uint32_t upper = 0; upper < (1u << 16); upper += 7) {
        x.push_back(std::bit_cast<float>(upper << 16 | 0x8000));
        x.push_back(half_to_float(static_cast<uint16_t>(upper)));
    }
    return x;
}

template <class To, class From>
void expect_each_converted(const std::vector<From>& x) {
    std::vector<To> y(x.size());
    convert_f32(x.data(), y.data(), x.size(), 0, 1);
    for (size_t i = 0; i < x.size(); ++i) {
        const float from = static_cast<float>(x[i]), to = static_cast<float>(y[i]);
        if (std::isnan(from))
            ASSERT_TRUE(std::isnan(to)) << i;
        else
            ASSERT_EQ(std::bit_cast<uint32_t>(to), std::bit_cast<uint32_t>(static_cast<float>(To(from))))
                << from;
    }
}

template <class To>
std::vector<To> all_of() {
    std::vector<To> x(1 << 16);
    for (uint32_t bits = 0; bits < (1u << 16); ++bits) x[bits].bits = static_cast<uint16_t>(bits);
    return x;
}

TEST(ConvertF32, RoundsToNearestEvenWithSubnormalsInfinitiesAndNan) {
    const std::vector<float> x = all_kinds();
    for_each_target([&] {
        expect_each_converted<Half>(x);
        expect_each_converted<BFloat16>(x);
    });
}

TEST(ConvertF32, WidensEverySixteenBitFloatExactly) {
    for_each_target([] {
        expect_each_converted<float>(all_of<Half>());
        expect_each_converted<float>(all_of<BFloat16>());
    });
}

template <class From, class To>
void expect_only_the_share_written(size_t n, int nth) {
    std::vector<From> x(n, From(1.5f));
    std::vector<To> y(n + 1, To(-7.0f));
    for (int ith = 0; ith < nth; ++ith) convert_f32(x.data(), y.data(), n, ith, nth);
    for (size_t i = 0; i < n; ++i)
        ASSERT_EQ(static_cast<float>(y[i]), 1.5f) << n << ", " << nth << " threads";
    ASSERT_EQ(static_cast<float>(y[n]), -7);
}

TEST(ConvertF32, WritesExactlyItsShareForAnyLengthAndThreadCount) {
    for_each_target([] {
        for (const size_t n : {0, 1, 7, 8, 31, 33, 100, 257})
            for (const int nth : testing::kThreadCounts) {
                expect_only_the_share_written<float, Half>(n, nth);
                expect_only_the_share_written<float, BFloat16>(n, nth);
                expect_only_the_share_written<Half, float>(n, nth);
                expect_only_the_share_written<BFloat16, float>(n, nth);
            }
    });
}

}  // namespace
}  // namespace headrace::kernels
