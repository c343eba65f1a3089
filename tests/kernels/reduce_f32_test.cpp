#include "kernels/reduce_f32.h"

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
using testing::random_floats;

constexpr Reduction kAll[] = {Reduction::sum, Reduction::sum_of_magnitudes, Reduction::sum_of_squares,
                              Reduction::largest, Reduction::smallest};
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

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
            for (const size_t n : {1, 5, 8, 17, 64}) {
                std::vector<double> totals(n, first_total(op));
                std::vector<std::vector<float>> columns(n);
                for (unsigned r = 0; r < 3; ++r) {
                    const std::vector<float> x = random_floats(n, r, -3, 2);
                    for (size_t j = 0; j < n; ++j) columns[j].push_back(x[j]);
                    reduce_row_f32(op, x.data(), n, totals.data());
                }
                for (size_t j = 0; j < n; ++j) EXPECT_NEAR(totals[j], expected(op, columns[j]), 1e-12);
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
                    reduce_row_f32(op, x.data(), n, totals.data());
                    reduce_row_f32(op, random_floats(n, 2).data(), n, totals.data());
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
