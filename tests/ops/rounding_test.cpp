#include <gmock/gmock.h>

#include <cmath>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Rounding, RoundEvenTakesHalvesToTheEvenNeighbor) {
    for (DType t : {DType::f32, DType::f16, DType::bf16, DType::f64})
        EXPECT_THAT(values("round_even", {tensor(t, {8}, {0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 2.75, kInf})}),
                    ElementsAre(0, 2, 2, 0, -2, -2, 3, kInf))
            << name_of(t);
    EXPECT_TRUE(std::isnan(values("round_even", {tensor(DType::f32, {}, {kNan})})[0]));
}

TEST(Rounding, SignIsMinusOneZeroOrOne) {
    EXPECT_THAT(values("sign", {tensor(DType::f32, {5}, {-kInf, -0.25, 0, 1e-30, kInf})}),
                ElementsAre(-1, -1, 0, 1, 1));
    EXPECT_TRUE(std::isnan(values("sign", {tensor(DType::f16, {}, {kNan})})[0]));
    EXPECT_THAT(values<int>("sign", {tensor(DType::i8, {3}, {-128, 0, 127})}), ElementsAre(-1, 0, 1));
    EXPECT_THAT(values<std::int64_t>("sign", {tensor<std::int64_t>(DType::i64, {2}, {INT64_MIN, INT64_MAX})}),
                ElementsAre(-1, 1));
}

TEST(Rounding, RejectsTypesWithoutTheFunction) {
    EXPECT_THAT(infer_error("round_even", {TensorType{DType::i32, {2}}}), HasSubstr("i32"));
    EXPECT_THAT(infer_error("sign", {TensorType{DType::u8, {2}}}), HasSubstr("u8"));
}

}  // namespace
}  // namespace headrace::testing
