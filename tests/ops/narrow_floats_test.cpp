#include <gmock/gmock.h>

#include <cmath>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> rounded(const std::string& format, const std::vector<double>& x, bool saturate = true,
                           const std::string& direction = "nearest") {
    return values("round_to", {tensor(DType::f32, {static_cast<std::int64_t>(x.size())}, x)},
                  {{"format", format}, {"saturate", saturate}, {"direction", direction}});
}

TEST(NarrowFloats, RoundToTheNearestNumberOfAFormatHalvesToTheEvenOne) {
    EXPECT_THAT(rounded("f8e4m3fn", {1.0625, 1.1875, 447, 0.001, -0.0009765625, 0.0015}),
                ElementsAre(1, 1.25, 448, 0.001953125, -0.0, 0.001953125));
    EXPECT_THAT(rounded("f8e5m2", {1.125, 1.375, 60000}), ElementsAre(1, 1.5, 57344));
    EXPECT_THAT(rounded("f4e2m1", {0.25, 0.75, 2.5, 3.5, 5, -1.7}), ElementsAre(0, 1, 2, 4, 4, -1.5));
}

TEST(NarrowFloats, SaturateOrHaveNoNumberBeyondTheLargest) {
    EXPECT_THAT(rounded("f8e4m3fn", {1e6, -kInf}), ElementsAre(448, -448));
    EXPECT_THAT(rounded("f8e5m2", {1e6, -kInf}, false), ElementsAre(kInf, -kInf));
    for (const float y : rounded("f8e4m3fnuz", {1e6, kInf, kNan}, false)) EXPECT_TRUE(std::isnan(y));
    EXPECT_THAT(rounded("f4e2m1", {100, -kInf, kNan}), ElementsAre(6, -6, 0));
}

TEST(NarrowFloats, RoundToPowersOfTwoInADirection) {
    EXPECT_THAT(rounded("f8e8m0", {1.25, 3, 8}, true, "up"), ElementsAre(2, 4, 8));
    EXPECT_THAT(rounded("f8e8m0", {1.25, 3, 8}, true, "down"), ElementsAre(1, 2, 8));
    EXPECT_THAT(rounded("f8e8m0", {1.25, 3, 0}), ElementsAre(1, 4, std::ldexp(1.0, -127)));
    EXPECT_TRUE(std::isnan(rounded("f8e8m0", {kInf}, false)[0]));
}

TEST(Bitcast, KeepsTheBits) {
    EXPECT_THAT(
        values<std::int64_t>("bitcast", {tensor(DType::f32, {2}, {1.0, -0.0})}, {{"data_type", DType::i32}}),
        ElementsAre(0x3f800000, INT32_MIN));
    EXPECT_THAT(values<int>("bitcast", {tensor(DType::i8, {2}, {-1, 5})}, {{"data_type", DType::u8}}),
                ElementsAre(255, 5));
}

TEST(Bitcast, RejectsTypesOfOtherSizes) {
    EXPECT_THAT(infer_error("bitcast", {TensorType{DType::f32, {2}}}, {{"data_type", DType::i64}}),
                HasSubstr("f32 has 32 bits and i64 has 64"));
}

}  // namespace
}  // namespace headrace::testing
