#include "kernels/tensor/arg_reduce_f32.h"

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

size_t expected(bool is_largest, const std::vector<float>& x) {
    size_t best = 0;
    for (size_t i = 1; i < x.size() && !std::isnan(x[best]); ++i)
        if (std::isnan(x[i]) || (is_largest ? x[i] > x[best] : x[i] < x[best])) best = i;
    return best;
}

void expect_position(const std::vector<float>& x) {
    for (const bool is_largest : {true, false})
        for (const auto side : {Guarded::Side::front, Guarded::Side::back}) {
            Guarded guarded(x, side);
            ASSERT_EQ(arg_extreme_f32(is_largest, guarded.data(), x.size()), expected(is_largest, x))
                << x.size() << " floats";
        }
}

TEST(ArgReduceF32, FindsTheFirstExtremeOfRunsOfAnyLength) {
    for_each_target([] {
        for (const size_t n : {1, 2, 7, 8, 31, 32, 33, 100, 1027, 4096, 4097, 9000}) {
            std::vector<float> x = random_floats(n, static_cast<unsigned>(n), -3, 2);
            expect_position(x);
            for (float& v : x) v = std::round(v);  // many equal ones
            expect_position(x);
        }
    });
}

TEST(ArgReduceF32, TakesTheFirstNanForTheExtreme) {
    for_each_target([] {
        for (const size_t n : {1, 40, 70})
            for (size_t at = 0; at < n; ++at) {
                std::vector<float> x = random_floats(n, 1);
                x[at] = x[n - 1] = NAN;
                expect_position(x);
            }
        std::vector<float> x = random_floats(9000, 1);
        x[4099] = x[8999] = NAN;
        expect_position(x);
    });
}

TEST(ArgReduceF32, KnowsInfinitiesAndZerosOfBothSigns) {
    for_each_target([] {
        for (const size_t n : {1, 20, 5000}) {
            expect_position(std::vector<float>(n, -INFINITY));
            expect_position(std::vector<float>(n, INFINITY));
            std::vector<float> x(n, 0.0f);
            x[0] = -0.0f;
            expect_position(x);
            x[n / 2] = -INFINITY;
            expect_position(x);
        }
    });
}

}  // namespace
}  // namespace headrace::kernels
