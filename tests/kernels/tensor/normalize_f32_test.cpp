#include "kernels/tensor/normalize_f32.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/each_target.h"
#include "kernels/guarded.h"
#include "kernels/matrix.h"

namespace headrace::kernels {
namespace {

using testing::for_each_target;
using testing::Guarded;
using testing::kInf;
using testing::Matrix;
using testing::random_floats;

struct Norm {
    bool centered, residual, sum, scale, bias;
};

// Runs rows × n through one of the norms and compares with double precision.
void expect_norm(size_t rows, size_t n, const Norm& t, int nth) {
    SCOPED_TRACE(::testing::Message() << rows << "x" << n << " residual " << t.residual << " sum " << t.sum
                                      << " scale " << t.scale << " bias " << t.bias << " threads " << nth);
    const Matrix x(rows, n, 3, 1), residual(rows, n, 1, 2);
    Matrix y(rows, n, 2, 3), sum(rows, n, 4, 4);
    const std::vector<float> scale = random_floats(n, 5), bias = random_floats(n, 6);
    LayerNormArgs g;
    g.rows = rows, g.n = n, g.eps = 1e-3f;
    g.x = x.data(), g.x_stride = x.stride;
    if (t.residual) g.residual = residual.data(), g.residual_stride = residual.stride;
    if (t.sum) g.sum = sum.data(), g.sum_stride = sum.stride;
    if (t.scale) g.scale = scale.data();
    if (t.bias) g.bias = bias.data();
    g.y = y.data(), g.y_stride = y.stride;
    for (int ith = 0; ith < nth; ++ith) (t.centered ? layer_norm_f32 : rms_norm_f32)(g, ith, nth);

    for (size_t r = 0; r < rows; ++r) {
        std::vector<double> v(n);
        double mean = 0, squares = 0;
        for (size_t i = 0; i < n; ++i) {
            v[i] = double(x.at(r, i)) + (t.residual ? residual.at(r, i) : 0);
            mean += v[i] / double(n);
        }
        if (!t.centered) mean = 0;
        for (double e : v) squares += (e - mean) * (e - mean);
        for (size_t i = 0; i < n; ++i) {
            const double normal = (v[i] - mean) / std::sqrt(squares / double(n) + 1e-3);
            ASSERT_NEAR(y.at(r, i), normal * (t.scale ? scale[i] : 1) + (t.bias ? bias[i] : 0), 4e-6);
            if (t.sum) {
                ASSERT_NEAR(sum.at(r, i), v[i], 2e-7);
            }
        }
    }
    ASSERT_TRUE(y.gaps_untouched());
    ASSERT_TRUE(sum.gaps_untouched());
}

TEST(NormalizeF32, LayerNormMatchesDoubleReference) {
    for_each_target([] {
        size_t turn = 0;
        for (size_t n : {1, 2, 7, 8, 15, 16, 17, 32, 33, 47, 63, 64, 100, 385})
            for (int options = 0; options < 16; ++options)
                expect_norm(
                    5, n,
                    {true, (options & 1) != 0, (options & 2) != 0, (options & 4) != 0, (options & 8) != 0},
                    testing::thread_count(turn++));
    });
}

TEST(NormalizeF32, RmsNormMatchesDoubleReference) {
    for_each_target([] {
        size_t turn = 0;
        for (size_t n : {1, 5, 16, 31, 64, 100})
            for (bool residual : {false, true})
                for (bool scale : {false, true})
                    expect_norm(4, n, {false, residual, false, scale, false}, testing::thread_count(turn++));
    });
}

TEST(NormalizeF32, LayerNormStaysAccurateWhenTheMeanDwarfsTheDeviation) {
    const size_t n = 500;
    std::vector<float> x(n), y(n);
    for (size_t i = 0; i < n; ++i) x[i] = 10'000.0f + static_cast<float>(i % 4);
    LayerNormArgs g{.rows = 1, .n = n, .x = x.data(), .y = y.data(), .eps = 0};
    for_each_target([&] {
        layer_norm_f32(g, 0, 1);
        for (size_t i = 0; i < n; ++i)
            ASSERT_NEAR(y[i], (static_cast<double>(i % 4) - 1.5) / std::sqrt(1.25), 1e-3);
    });
}

TEST(NormalizeF32, LayerNormWorksInPlaceOfEitherOperand) {
    for_each_target([] {
        for (bool over_residual : {false, true}) {
            std::vector<float> x = random_floats(50, 1), residual = random_floats(50, 2), expected(50);
            LayerNormArgs g{.rows = 2,
                            .n = 25,
                            .x = x.data(),
                            .x_stride = 25,
                            .residual = residual.data(),
                            .residual_stride = 25,
                            .y = expected.data(),
                            .y_stride = 25};
            layer_norm_f32(g, 0, 1);
            g.y = over_residual ? residual.data() : x.data();
            layer_norm_f32(g, 0, 1);
            EXPECT_EQ(over_residual ? residual : x, expected);
        }
    });
}

TEST(NormalizeF32, NanSpoilsItsRowOnly) {
    std::vector<float> x = random_floats(3 * 40, 1), y(3 * 40);
    x[40 + 39] = NAN;
    LayerNormArgs norm{.rows = 3, .n = 40, .x = x.data(), .x_stride = 40, .y = y.data(), .y_stride = 40};
    SoftmaxArgs softmax{.rows = 3, .n = 40, .x = x.data(), .x_stride = 40, .y = y.data(), .y_stride = 40};
    for_each_target([&] {
        layer_norm_f32(norm, 0, 1);
        for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(std::isnan(y[i]), i / 40 == 1);
        std::fill(y.begin(), y.end(), 0.0f);
        softmax_f32(softmax, 0, 1);
        for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(std::isnan(y[i]), i / 40 == 1);
    });
}

void expect_softmax(size_t rows, size_t n, float scale, bool mask, int nth) {
    SCOPED_TRACE(::testing::Message()
                 << rows << "x" << n << " scale " << scale << " mask " << mask << " threads " << nth);
    Matrix x(rows, n, 2, 1), y(rows, n, 3, 2);
    Matrix masks(2, n, 1, 3);
    for (size_t i = 0; i < n; i += 3) masks.at(1, i) = -kInf;
    if (n == 1) masks.at(1, 0) = 0;
    SoftmaxArgs g;
    g.rows = rows, g.n = n, g.scale = scale;
    g.x = x.data(), g.x_stride = x.stride, g.y = y.data(), g.y_stride = y.stride;
    if (mask) g.mask = masks.data(), g.mask_stride = masks.stride, g.mask_rows = 2;
    for (int ith = 0; ith < nth; ++ith) softmax_f32(g, ith, nth);
    for (size_t r = 0; r < rows; ++r) {
        std::vector<double> v(n);
        double largest = -kInf, total = 0;
        for (size_t i = 0; i < n; ++i) {
            v[i] = double(x.at(r, i)) * scale + (mask ? masks.at(r % 2, i) : 0);
            largest = std::max(largest, v[i]);
        }
        for (double& e : v) total += e = std::exp(e - largest);
        for (size_t i = 0; i < n; ++i) ASSERT_NEAR(y.at(r, i), v[i] / total, 1e-9 + 4e-6 * v[i] / total);
    }
    ASSERT_TRUE(y.gaps_untouched());
}

TEST(NormalizeF32, SoftmaxMatchesDoubleReference) {
    for_each_target([] {
        size_t turn = 0;
        for (size_t n : {1, 3, 4, 8, 15, 16, 17, 31, 33, 64, 65, 130, 1000})
            for (float scale : {1.0f, 0.3f, 30.0f, -2.0f})
                for (bool mask : {false, true})
                    expect_softmax(5, n, scale, mask, testing::thread_count(turn++));
    });
}

TEST(NormalizeF32, SoftmaxOfHugeValuesDoesNotOverflow) {
    const std::vector<float> x = {3e38f, -3e38f, 3e38f, -kInf};
    std::vector<float> y(4);
    const SoftmaxArgs g{.rows = 1, .n = 4, .x = x.data(), .y = y.data()};
    for_each_target([&] {
        softmax_f32(g, 0, 1);
        EXPECT_EQ(y, (std::vector<float>{0.5f, 0, 0.5f, 0}));
    });
}

TEST(NormalizeF32, ShiftsAndScalesRunsOfAnyLengthNearALargeMean) {
    for_each_target([] {
        for (const size_t n : {1, 3, 8, 17, 100}) {
            std::vector<float> x = random_floats(n, static_cast<unsigned>(n), 99'999, 100'001);
            const double mean = 100'000.0042, factor = 1.75, bias = -0.5;
            for (const bool in_place : {false, true}) {
                std::vector<float> from = x, aside(n + 1, 77);
                float* y = in_place ? from.data() : aside.data();
                shift_and_scale_f32(from.data(), n, {mean, factor, bias}, y);
                for (size_t i = 0; i < n; ++i) ASSERT_NEAR(y[i], (x[i] - mean) * factor + bias, 5e-7) << i;
                ASSERT_EQ(aside[n], 77);
            }
            x[n / 2] = NAN;
            std::vector<float> y(n);
            shift_and_scale_f32(x.data(), n, {mean, factor, bias}, y.data());
            for (size_t i = 0; i < n; ++i) ASSERT_EQ(std::isnan(y[i]), i == n / 2);
        }
    });
}

TEST(NormalizeF32, ShiftsAndScalesEachColumnOfRows) {
    for_each_target([] {
        for (const size_t n : {1, 15, 16, 64, 101})
            for (const auto side : {Guarded::Side::front, Guarded::Side::back}) {
                constexpr size_t kRows = 5;
                const std::vector<float> x = random_floats(kRows * n, 8, 999, 1001);
                std::vector<ShiftAndScale> columns;
                for (size_t j = 0; j < n; ++j) {
                    const double at = static_cast<double>(j);
                    columns.push_back({1000 + at / 300, 0.25 + at / 100, at});
                }
                Guarded from(x, side), to(std::vector<float>(kRows * n), side);
                shift_and_scale_rows_f32(from.data(), static_cast<ptrdiff_t>(n), kRows, n, columns.data(),
                                         to.data());
                for (size_t i = 0; i < kRows * n; ++i) {
                    const ShiftAndScale& c = columns[i % n];
                    ASSERT_NEAR(to.data()[i], (x[i] - c.mean) * c.factor + c.bias, 1e-5) << i;
                }
            }
    });
}

TEST(NormalizeF32, ShiftsByInfinityAsOneSubtractionDoes) {
    for_each_target([] {
        const std::vector<float> x(20, 3.0f);
        const std::vector<ShiftAndScale> columns(20, {kInf, 0.5, 1});
        std::vector<float> run(20), rows(20);
        shift_and_scale_f32(x.data(), 20, columns[0], run.data());
        shift_and_scale_rows_f32(x.data(), 20, 1, 20, columns.data(), rows.data());
        EXPECT_EQ(run, std::vector<float>(20, -kInf));
        EXPECT_EQ(rows, run);
    });
}

TEST(NormalizeF32, SoftmaxWorksInPlace) {
    for_each_target([] {
        std::vector<float> x = random_floats(3 * 21, 4), expected(3 * 21);
        SoftmaxArgs g{.rows = 3,
                      .n = 21,
                      .x = x.data(),
                      .x_stride = 21,
                      .y = expected.data(),
                      .y_stride = 21,
                      .scale = 2};
        softmax_f32(g, 0, 1);
        g.y = x.data();
        softmax_f32(g, 0, 1);
        EXPECT_EQ(x, expected);
    });
}

TEST(NormalizeF32, SoftmaxOfAFullyMaskedRowIsNan) {
    const std::vector<float> x(20, -kInf);
    std::vector<float> y(20);
    const SoftmaxArgs g{.rows = 1, .n = 20, .x = x.data(), .y = y.data()};
    for_each_target([&] {
        softmax_f32(g, 0, 1);
        for (float v : y) ASSERT_TRUE(std::isnan(v));
    });
}

TEST(NormalizeF32, SoftmaxLeavesTheDivisionToThoseWhoAskForTheSums) {
    for_each_target([] {
        for (const size_t n : {1, 20, 700}) {
            std::vector<float> x = random_floats(9 * n, 5), y(9 * n), weights(9 * n), sums(9, 77);
            std::fill_n(x.begin() + 2 * ptrdiff_t(n), n, -kInf);
            x[5 * n] = NAN;
            const ptrdiff_t stride = ptrdiff_t(n);
            SoftmaxArgs g{.rows = 9, .n = n, .x = x.data(), .x_stride = stride, .y = y.data()};
            g.y_stride = stride;
            softmax_f32(g, 0, 1);
            g.y = weights.data(), g.sums = sums.data();
            for (const int ith : {0, 1}) softmax_f32(g, ith, 2);
            for (size_t i = 0; i < y.size(); ++i) {
                const size_t row = i / n;
                if (row == 2)
                    ASSERT_EQ(weights[i], 0);
                else if (row == 5)
                    ASSERT_TRUE(std::isnan(weights[i] / sums[row]));
                else
                    ASSERT_NEAR(weights[i] / sums[row], y[i], 1e-7f);
            }
            EXPECT_EQ(sums[2], 0);
        }
    });
}

}  // namespace
}  // namespace headrace::kernels
