#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::HasSubstr;

std::vector<float> drawn(std::int64_t seed, std::int64_t counter) {
    return values("random_uniform", {tensor<std::int64_t>(DType::i64, {1}, {counter})},
                  {{"seed", seed}, {"new_shape", Shape{100, 100}}});
}

TEST(RandomUniform, FillsTheRangeFromZeroToOne) {
    const auto x = drawn(3, 1);
    const double mean = std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
    EXPECT_NEAR(mean, 0.5, 0.02);
    EXPECT_GE(*std::min_element(x.begin(), x.end()), 0);
    EXPECT_LT(*std::max_element(x.begin(), x.end()), 1);
}

TEST(RandomUniform, DependsOnSeedAndCounterAlone) {
    EXPECT_EQ(drawn(3, 1), drawn(3, 1));
    EXPECT_NE(drawn(3, 1), drawn(3, 2));
    EXPECT_NE(drawn(3, 1), drawn(4, 1));
}

TEST(RandomUniform, CountsWithOneNumber) {
    EXPECT_THAT(infer_error("random_uniform", {TensorType{DType::i64, {2}}}, {{"new_shape", Shape{3}}}),
                HasSubstr("the counter is one number, got [2]"));
}

}  // namespace
}  // namespace headrace::testing
