#include <gmock/gmock.h>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

const NamedAttrs kWithoutEpsilon{{"epsilon", 0.0}};

TEST(RmsNorm, DividesByTheRootOfTheMeanSquareInEveryFloatType) {
    // The mean square of 1, 7, 5, 5 is 25.
    for (DType t : {DType::f32, DType::f16, DType::bf16, DType::f64})
        EXPECT_THAT(
            values<double>("rms_norm", {tensor(t, {4}, {5, 35, 25, -25}), tensor(t, {4}, {1, 1, 2, 4})},
                           kWithoutEpsilon),
            Pointwise(DoubleNear(1e-2), {0.2, 1.4, 2.0, -4.0}))
            << name_of(t);
}

TEST(RmsNorm, TreatsEachRowByItself) {
    EXPECT_THAT(values("rms_norm", {tensor(DType::f32, {2, 1, 2}, {3, 3, -8, 8})}, kWithoutEpsilon),
                ElementsAre(1, 1, -1, 1));
}

TEST(RmsNorm, TakesSeveralOfTheLastDimensionsAsOneGroup) {
    const NamedAttrs two{{"dimensions", std::int64_t{2}}, {"epsilon", 0.0}};
    EXPECT_THAT(
        values<double>(
            "rms_norm",
            {tensor(DType::f32, {1, 2, 2}, {1, 7, 5, 5}), tensor(DType::f32, {2, 2}, {5, 5, 1, 0})}, two),
        Pointwise(DoubleNear(1e-6), {1.0, 7.0, 1.0, 0.0}));
}

TEST(RmsNorm, AddsEpsilonToTheMeanSquare) {
    EXPECT_THAT(values("rms_norm", {tensor(DType::f32, {2}, {0, 0})}), ElementsAre(0, 0));
    EXPECT_THAT(values<double>("rms_norm", {tensor(DType::f64, {1}, {3})}, {{"epsilon", 16.0}}),
                Pointwise(DoubleNear(1e-15), {0.6}));
}

TEST(RmsNorm, RefusesScalesOfAnotherShapeAndGroupsThatDoNotExist) {
    EXPECT_THAT(error("rms_norm", {tensor(DType::f32, {2, 2}, {1, 2, 3, 4}), tensor(DType::f32, {1}, {1})}),
                HasSubstr("scale has shape [1] but the normalised dimensions have [2]"));
    EXPECT_THAT(error("rms_norm", {tensor(DType::f32, {2}, {1, 2})}, {{"dimensions", std::int64_t{2}}}),
                HasSubstr("dimensions is 2; an input of rank 1 has 1 to 1"));
}

}  // namespace
}  // namespace headrace::testing
