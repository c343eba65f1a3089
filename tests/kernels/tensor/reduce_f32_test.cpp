#include "kernels/tensor/reduce_f32.h"

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
using testing::kNan;
using testing::random_floats;

constexpr Reduction kAll[] = {Reduction::sum, Reduction::sum_of_magnitudes, Reduction::sum_of_squares,
                              Reduction::largest, Reduction::smallest};

double expected(Reduction op, const std::vector<float>& x) {
    double total = first_total(op);
    for (const float v : x) {
        if (op == Reduction::largest)
            total = std::fmax(total, v);
        else if (op == Reduction::smallest)
            total = std::fmin(total, v);
        else
            total += op == Reduction::sum ? v : op == Reduction::sum_of_squares ? double(v) * v : std::abs(v);
    }
    return total;
}

TEST(ReduceF32, TotalsRunsOfAnyLength) {
    for_each_target([] {
        for (const Reduction op : kAll)
            for (const size_t n : {0, 1, 3, 7, 8, 31, 32, 33, 64, 100, 1027}) {
                const std::vector<float> x = random_floats(n, static_cast<unsigned>(n), -3, 2);
                for (const auto side : {Guarded::Side::front, Guarded::Side::back}) {
                    Guarded guarded(x, side);
                    const double total = reduce_run_f32(op, guarded.data(), n), exact = expected(op, x);
                    if (n == 0)
                        EXPECT_EQ(total, exact);
                    else
                        EXPECT_NEAR(total, exact, 1e-12 * (1 + std::abs(exact))) << n;
                }
            }
    });
}

TEST(ReduceF32, TakesRowsIntoTheTotalsOfTheirColumns) {
    for_each_target([] {
        for (const Reduction op : kAll)
            for (const size_t n : {1, 5, 8, 17, 64})
                for (const size_t rows : {0, 1, 3, 8, 21}) {
                    const size_t stride = n + 2;
                    std::vector<float> x = random_floats(rows * stride, static_cast<unsigned>(n), -3, 2);
                    if (rows) x.resize(x.size() - 2);
                    std::vector<double> totals(n + 1, first_total(op));
                    Guarded guarded(x, n % 2 ? Guarded::Side::front : Guarded::Side::back);
                    reduce_rows_f32(op, guarded.data(), static_cast<ptrdiff_t>(stride), rows, n,
                                    totals.data());
                    for (size_t j = 0; j < n; ++j) {
                        std::vector<float> column;
                        for (size_t r = 0; r < rows; ++r) column.push_back(x[r * stride + j]);
                        if (rows == 0)
                            EXPECT_EQ(totals[j], first_total(op));
                        else
                            EXPECT_NEAR(totals[j], expected(op, column), 1e-12);
                    }
                    EXPECT_EQ(totals[n], first_total(op));
                }
    });
}

TEST(ReduceF32, SumsSquaredDeviationsOfRunsOfAnyLength) {
    for_each_target([] {
        for (const size_t n : {0, 1, 3, 8, 31, 33, 1027}) {
            const std::vector<float> x = random_floats(n, static_cast<unsigned>(n), 999, 1001);
            double sum = 0;
            for (const float v : x) sum += (v - 1000.25) * (v - 1000.25);
            for (const auto side : {Guarded::Side::front, Guarded::Side::back}) {
                Guarded guarded(x, side);
                EXPECT_NEAR(squared_deviations_f32(guarded.data(), n, 1000.25), sum, 1e-12 * (1 + sum)) << n;
            }
        }
    });
}

TEST(ReduceF32, SumsSquaredDeviationsOfColumns) {
    for_each_target([] {
        for (const size_t n : {1, 7, 8, 37})
            for (const size_t rows : {0, 1, 9}) {
                const size_t stride = n + 3;
                const std::vector<float> x = random_floats(rows * stride, 3, 999, 1001);
                std::vector<double> means(n), totals(n, 0.5), sums(n, 0.5);
                for (size_t j = 0; j < n; ++j) means[j] = 1000 + 0.01 * static_cast<double>(j);
                for (size_t i = 0; i < rows * n; ++i) {
                    const double deviation = x[i / n * stride + i % n] - means[i % n];
                    sums[i % n] += deviation * deviation;
                }
                squared_deviations_of_rows_f32(x.data(), static_cast<ptrdiff_t>(stride), rows, n,
                                               means.data(), totals.data());
                for (size_t j = 0; j < n; ++j) EXPECT_NEAR(totals[j], sums[j], 1e-12 * sums[j]) << j;
            }
    });
}

TEST(ReduceF32, IsNanIfAnyElementIsWhereverItStands) {
    for_each_target([] {
        for (const Reduction op : kAll)
            for (const size_t n : {1, 40, 70})
                for (size_t at = 0; at < n; ++at) {
                    std::vector<float> x = random_floats(n, 1);
                    x[at] = kNan;
                    EXPECT_TRUE(std::isnan(reduce_run_f32(op, x.data(), n))) << at << " of " << n;
                    std::vector<double> totals(n, first_total(op));
                    const std::vector<float> numbers = random_floats(9 * n, 2);
                    reduce_rows_f32(op, numbers.data(), static_cast<ptrdiff_t>(n), 1, n, totals.data());
                    reduce_rows_f32(op, x.data(), static_cast<ptrdiff_t>(n), 1, n, totals.data());
                    reduce_rows_f32(op, numbers.data(), static_cast<ptrdiff_t>(n), 9, n, totals.data());
                    for (size_t j = 0; j < n; ++j) EXPECT_EQ(std::isnan(totals[j]), j == at);
                }
    });
}

TEST(ReduceF32, KnowsInfinities) {
    const std::vector<float> x{1, std::numeric_limits<float>::infinity(), -2};
    EXPECT_EQ(reduce_run_f32(Reduction::largest, x.data(), 3), std::numeric_limits<double>::infinity());
    EXPECT_EQ(reduce_run_f32(Reduction::smallest, x.data(), 3), -2);
    EXPECT_EQ(reduce_run_f32(Reduction::sum, x.data(), 3), std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace headrace::kernels
