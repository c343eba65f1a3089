#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;

std::vector<TestTensor> quantized(const std::vector<double>& x) {
    return run("dynamic_quantize_linear", {tensor(DType::f32, {static_cast<std::int64_t>(x.size())}, x)});
}

TEST(DynamicQuantizeLinear, WidensTheRangeToHoldZero) {
    const auto both = quantized({-51, 0, 204, 100});
    EXPECT_THAT(both[0].as<int>(), ElementsAre(0, 51, 255, 151));
    EXPECT_THAT(both[1].as<float>(), ElementsAre(1.0f));
    EXPECT_THAT(both[2].as<int>(), ElementsAre(51));
    const auto above = quantized({51, 510});
    EXPECT_THAT(above[0].as<int>(), ElementsAre(26, 255));  // 25.5 to even
    EXPECT_THAT(above[2].as<int>(), ElementsAre(0));
    EXPECT_THAT(quantized({-510, -2})[2].as<int>(), ElementsAre(255));
}

TEST(DynamicQuantizeLinear, HasAScaleForNothingButZeros) {
    const auto zeros = quantized({0, 0, 0});
    EXPECT_THAT(zeros[0].as<int>(), ElementsAre(0, 0, 0));
    EXPECT_THAT(zeros[1].as<float>(), ElementsAre(1.0f));
}

}  // namespace
}  // namespace headrace::testing
