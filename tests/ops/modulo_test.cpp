#include <gmock/gmock.h>

#include <cmath>
#include <numbers>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

const auto kA = tensor(DType::f32, {4}, {5.5, -5.5, 5.5, -5.5});
const auto kB = tensor(DType::f32, {4}, {2, 2, -2, -2});

TEST(Fmod, HasTheSignOfTheDividend) {
    EXPECT_THAT(values("fmod", {kA, kB}), ElementsAre(1.5, -1.5, 1.5, -1.5));
    EXPECT_THAT(
        values<int>("fmod", {tensor(DType::i8, {3}, {-7, 7, -128}), tensor(DType::i8, {3}, {3, -3, -1})}),
        ElementsAre(-1, 1, 0));
}

TEST(Remainder, HasTheSignOfTheDivisor) {
    EXPECT_THAT(values("remainder", {kA, kB}), ElementsAre(1.5, 0.5, -0.5, -1.5));
    EXPECT_THAT(
        values<int>("remainder", {tensor(DType::i32, {3}, {-7, 7, 6}), tensor(DType::i32, {3}, {3, -3, 3})}),
        ElementsAre(2, -2, 0));
    EXPECT_THAT(values<int>("remainder", {tensor(DType::u8, {}, {250}), tensor(DType::u8, {}, {7})}),
                ElementsAre(5));
}

TEST(Remainder, OfADivisionByZeroIsZeroForIntegersAndNanForFloats) {
    for (const char* op : {"fmod", "remainder"}) {
        EXPECT_THAT(values<int>(op, {tensor(DType::i64, {}, {7}), tensor(DType::i64, {}, {0})}),
                    ElementsAre(0))
            << op;
        EXPECT_TRUE(std::isnan(values(op, {tensor(DType::f32, {}, {7}), tensor(DType::f32, {}, {0})})[0]))
            << op;
    }
}

TEST(Atan2, GivesTheAngleInEveryQuadrant) {
    const auto y = tensor(DType::f32, {4}, {1, 1, -1, -1}), x = tensor(DType::f32, {4}, {1, -1, -1, 0});
    const float quarter = std::numbers::pi_v<float> / 4;
    EXPECT_THAT(values("atan2", {y, x}),
                ElementsAre(FloatNear(quarter, 1e-6f), FloatNear(3 * quarter, 1e-6f),
                            FloatNear(-3 * quarter, 1e-6f), FloatNear(-2 * quarter, 1e-6f)));
    EXPECT_NE(infer_error("atan2", {TensorType{DType::i32, {2}}, TensorType{DType::i32, {2}}}), "");
}

}  // namespace
}  // namespace headrace::testing
