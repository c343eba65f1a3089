#include "kernels/tensor/elementwise_f32.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/each_target.h"
#include "kernels/guarded.h"
#include "kernels/matrix.h"

namespace headrace::kernels {
namespace {

using testing::for_each_target;
using testing::Guarded;
using testing::kInf;
using testing::kNan;

long double logistic(long double x) { return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x)); }

long double exact(Unary op, long double x) {
    switch (op) {
        case Unary::exp: return expl(x);
        case Unary::log: return logl(x);
        case Unary::tanh: return tanhl(x);
        case Unary::sigmoid: return logistic(x);
        case Unary::erf: return erfl(x);
        case Unary::gelu_erf: return x * 0.5L * erfcl(-x * sqrtl(0.5L));
        case Unary::gelu_tanh:
            return x * logistic(2 * sqrtl(2 / 3.14159265358979323846L) * (x + 0.044715L * x * x * x));
        case Unary::silu: return x * logistic(x);
        case Unary::relu: return x > 0 ? x : 0;
        case Unary::sqrt: return sqrtl(x);
        case Unary::sin: return sinl(x);
        case Unary::cos: return cosl(x);
        case Unary::softplus: return (x > 0 ? x : 0) + log1pl(expl(-fabsl(x)));
        case Unary::hard_swish: return x * std::min(std::max((x + 3) / 6, 0.0L), 1.0L);
    }
    return 0;
}

// Distance in units in the last place of the exact result.
double ulps(float actual, long double expected) {
    const float rounded = std::abs(static_cast<float>(expected));
    const long double ulp = std::nextafter(rounded, kInf) - rounded;
    return static_cast<double>(std::abs(expected - static_cast<long double>(actual)) / ulp);
}

// Worst error over floats of every exponent and sign whose magnitude is at most `limit`.
double worst_error(Unary op, float limit) {
    std::vector<float> x;
    for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 100'003) {
        const float value = std::bit_cast<float>(static_cast<uint32_t>(bits));
        if (std::abs(value) <= limit && !((op == Unary::log || op == Unary::sqrt) && value <= 0))
            x.push_back(value);
    }
    std::vector<float> y(x.size());
    unary_f32(op, x.data(), y.data(), x.size(), 0, 1);
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
        const long double expected = exact(op, x[i]);
        // Exponentials too small for a normal number become 0 within other functions.
        if (op != Unary::exp && std::abs(expected) < std::numeric_limits<float>::min() && y[i] == 0) continue;
        const double error = ulps(y[i], expected);
        EXPECT_FALSE(std::isnan(error)) << "at " << x[i] << " got " << y[i];
        worst = std::max(worst, error);
    }
    return worst;
}

TEST(ElementwiseF32, IsAccurateToAFewUlpOverAllExponents) {
    for_each_target([] {
        EXPECT_LE(worst_error(Unary::exp, 88), 1.5);
        EXPECT_LE(worst_error(Unary::log, std::numeric_limits<float>::max()), 1.5);
        EXPECT_LE(worst_error(Unary::tanh, std::numeric_limits<float>::max()), 6);
        EXPECT_LE(worst_error(Unary::sigmoid, std::numeric_limits<float>::max()), 4);
        EXPECT_LE(worst_error(Unary::erf, std::numeric_limits<float>::max()), 6);
        EXPECT_LE(worst_error(Unary::gelu_erf, std::numeric_limits<float>::max()), 8);
        EXPECT_EQ(worst_error(Unary::relu, std::numeric_limits<float>::max()), 0);
        EXPECT_LE(worst_error(Unary::sqrt, std::numeric_limits<float>::max()), 0.5);
        EXPECT_LE(worst_error(Unary::sin, std::numeric_limits<float>::max()), 3);
        EXPECT_LE(worst_error(Unary::cos, std::numeric_limits<float>::max()), 3);
        EXPECT_LE(worst_error(Unary::softplus, std::numeric_limits<float>::max()), 4);
        EXPECT_LE(worst_error(Unary::hard_swish, 1e37f), 2.5);
    });
}

// e^u multiplies the rounding error of u by u: the far negative tails are less accurate, near zero by then.
TEST(ElementwiseF32, KeepsTailsOfProductsWithSigmoidWithinTolerance) {
    for_each_target([] {
        EXPECT_LE(worst_error(Unary::silu, 87), 6);
        EXPECT_LE(worst_error(Unary::gelu_tanh, 4), 40);
        EXPECT_LE(worst_error(Unary::gelu_tanh, 9), 200);
    });
}

struct Limits {
    Unary op;
    float at_minus_infinity, at_zero, at_plus_infinity;
};

TEST(ElementwiseF32, GivesLimitsAtInfinityAndKeepsNan) {
    const Limits table[] = {
        {Unary::exp, 0, 1, kInf},
        {Unary::log, kNan, -kInf, kInf},
        {Unary::tanh, -1, 0, 1},
        {Unary::sigmoid, 0, 0.5f, 1},
        {Unary::erf, -1, 0, 1},
        {Unary::gelu_erf, 0, 0, kInf},
        {Unary::gelu_tanh, 0, 0, kInf},
        {Unary::silu, 0, 0, kInf},
        {Unary::relu, 0, 0, kInf},
        {Unary::sqrt, kNan, 0, kInf},
        {Unary::softplus, 0, 0.69314718f, kInf},
    };
    for_each_target([&] {
        for (const Limits& row : table) {
            SCOPED_TRACE(static_cast<int>(row.op));
            const float x[] = {kNan, -kInf, 0, kInf, -1e30f, 1e30f};
            float y[6];
            unary_f32(row.op, x, y, 6, 0, 1);
            EXPECT_TRUE(std::isnan(y[0]));
            if (std::isnan(row.at_minus_infinity)) {
                EXPECT_TRUE(std::isnan(y[1]));
            } else {
                EXPECT_EQ(y[1], row.at_minus_infinity);
                EXPECT_EQ(y[4], row.at_minus_infinity);
            }
            EXPECT_EQ(y[2], row.at_zero);
            EXPECT_EQ(y[3], row.at_plus_infinity);
        }
    });
}

TEST(ElementwiseF32, OverflowsLikeTheExactExponentialAndUnderflowsGradually) {
    for_each_target([] {
        const float x[] = {88.7f, 88.73f, 200, -87.33f, -87.34f, -104, -100, -1000};
        float y[8];
        unary_f32(Unary::exp, x, y, 8, 0, 1);
        EXPECT_LT(y[0], kInf);
        EXPECT_EQ(y[1], kInf);
        EXPECT_EQ(y[2], kInf);
        EXPECT_LE(ulps(y[3], expl(x[3])), 1.5);
        EXPECT_NEAR(y[4], expl(x[4]), 1e-44);
        EXPECT_EQ(y[5], 0);
        EXPECT_EQ(y[6], std::exp(-100.0f));
        EXPECT_EQ(y[7], 0);
    });
}

TEST(ElementwiseF32, TakesAnglesOfAnySizeAndKeepsTheSignOfZero) {
    for_each_target([] {
        const float x[] = {-0.0f, kInf, -kInf, kNan, 38999.5f, 39001.5f, -1e30f, 3.14159274f};
        float y[8];
        unary_f32(Unary::sin, x, y, 8, 0, 1);
        EXPECT_TRUE(y[0] == 0 && std::signbit(y[0]));
        for (int i : {1, 2, 3}) EXPECT_TRUE(std::isnan(y[i])) << x[i];
        for (int i : {4, 5, 6, 7}) EXPECT_LE(ulps(y[i], sinl(x[i])), 3) << x[i];
        unary_f32(Unary::cos, x, y, 8, 0, 1);
        EXPECT_EQ(y[0], 1);
        for (int i : {1, 2, 3}) EXPECT_TRUE(std::isnan(y[i])) << x[i];
        for (int i : {4, 5, 6, 7}) EXPECT_LE(ulps(y[i], cosl(x[i])), 3) << x[i];
    });
}

TEST(ElementwiseF32, ScalesNegativeElementsOnlyInLeakyRelu) {
    for_each_target([] {
        for (const float alpha : {0.01f, -1.5f}) {
            const float x[] = {kNan, -kInf, kInf, -0.0f, 0, -2, 3, -1e-30f, 1e30f};
            float y[10] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 77};
            leaky_relu_f32(alpha, x, y, 9, 0, 1);
            EXPECT_TRUE(std::isnan(y[0]));
            for (int i = 1; i < 9; ++i) EXPECT_EQ(y[i], x[i] < 0 ? alpha * x[i] : x[i]) << x[i];
            EXPECT_EQ(y[9], 77);
        }
    });
}

TEST(ElementwiseF32, WritesExactlyItsShareForAnyLengthAndThreadCount) {
    for_each_target([] {
        for (size_t n : {0, 1, 3, 15, 16, 17, 31, 33, 64, 100, 257}) {
            for (int nth : testing::kThreadCounts) {
                std::vector<float> values(n);
                for (size_t i = 0; i < n; ++i) values[i] = static_cast<float>(i) - 20;
                for (const auto side : {Guarded::Side::front, Guarded::Side::back}) {
                    Guarded x(values, side), y(std::vector<float>(n, -7), side);
                    for (int ith = 0; ith < nth; ++ith)
                        unary_f32(Unary::relu, x.data(), y.data(), n, ith, nth);
                    for (size_t i = 0; i < n; ++i)
                        ASSERT_EQ(y.data()[i], std::max(values[i], 0.0f))
                            << n << " floats, " << nth << " threads";
                }
            }
        }
    });
}

TEST(ElementwiseF32, WorksInPlace) {
    for_each_target([] {
        std::vector<float> x(37, 1.0f);
        unary_f32(Unary::exp, x.data(), x.data(), x.size(), 0, 1);
        for (float v : x) ASSERT_NEAR(v, 2.718281828, 3e-7);
    });
}

TEST(ElementwiseF32, GatesEveryLengthInPlaceAndAside) {
    for_each_target([] {
        for (const Unary op : {Unary::silu, Unary::gelu_erf, Unary::sigmoid, Unary::relu})
            for (const size_t n : {1, 3, 16, 17, 50, 333})
                for (const int nth : {1, 3}) {
                    const std::vector<float> x = testing::random_floats(n, 2);
                    Guarded gate(testing::random_floats(n, 1), Guarded::Side::back),
                        y(x, Guarded::Side::back);
                    std::vector<float> activated(n);
                    unary_f32(op, gate.data(), activated.data(), n, 0, 1);
                    for (int ith = 0; ith < nth; ++ith)
                        gated_f32(op, gate.data(), y.data(), y.data(), n, ith, nth);
                    for (size_t i = 0; i < n; ++i) ASSERT_EQ(y.data()[i], activated[i] * x[i]) << i;
                }
    });
}

TEST(ElementwiseF32, RotatesHalvesAndPairsOfRows) {
    for_each_target([] {
        for (const size_t n : {2, 6, 16, 50, 64, 128})
            for (const bool interleaved : {false, true}) {
                const auto x = testing::random_floats(n, 1), cos = testing::random_floats(n, 2),
                           sin = testing::random_floats(n, 3);
                std::vector<float> y(n + 1, 7.0f);
                rotate_row_f32(x.data(), cos.data(), sin.data(), y.data(), n, interleaved);
                for (size_t i = 0; i < n; ++i) {
                    const bool first = interleaved ? i % 2 == 0 : i < n / 2;
                    const size_t step = interleaved ? 1 : n / 2;
                    const double other = first ? -double(x[i + step]) : double(x[i - step]);
                    ASSERT_NEAR(y[i], double(x[i]) * cos[i] + other * sin[i], 2e-7) << n << " " << i;
                }
                ASSERT_EQ(y[n], 7.0f);
            }
    });
}

}  // namespace
}  // namespace headrace::kernels
