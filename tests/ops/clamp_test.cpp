#include <gmock/gmock.h>

#include <cmath>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::int64_t kBig = 9007199254740993;  // 2^53 + 1, which double cannot hold

NamedAttrs between(AttrValue low, AttrValue high) { return {{"min_value", low}, {"max_value", high}}; }

TEST(Clamp, LimitsBothSidesOneSideOrNone) {
    const auto x = tensor(DType::f32, {4}, {-8, -1, 2, 9});
    EXPECT_THAT(values("clamp", {x}, between(-1.5, 6.0)), ElementsAre(-1.5f, -1, 2, 6));
    EXPECT_THAT(values("clamp", {x}, {{"min_value", 0.0}}), ElementsAre(0, 0, 2, 9));
    EXPECT_THAT(values("clamp", {x}, {{"max_value", std::int64_t{1}}}), ElementsAre(-8, -1, 1, 1));
    EXPECT_THAT(values("clamp", {x}), ElementsAre(-8, -1, 2, 9));
}

TEST(Clamp, KeepsNanElementsAndIgnoresNanBounds) {
    EXPECT_TRUE(std::isnan(values("clamp", {tensor(DType::f32, {1}, {kNan})}, between(0.0, 1.0))[0]));
    EXPECT_THAT(values("clamp", {tensor(DType::f32, {2}, {-kInf, kInf})}, between(kNan, kNan)),
                ElementsAre(-kInf, kInf));
    EXPECT_THAT(values("clamp", {tensor(DType::f32, {2}, {-kInf, 3})}, between(kInf, kNan)),
                ElementsAre(kInf, kInf));
}

TEST(Clamp, KeepsSixtyFourBitBoundsExact) {
    EXPECT_THAT(values<std::int64_t>("clamp", {tensor<std::int64_t>(DType::i64, {2}, {kBig + 5, -kBig - 5})},
                                     between(-kBig, kBig)),
                ElementsAre(kBig, -kBig));
    EXPECT_THAT(values<std::uint64_t>("clamp", {tensor<std::uint64_t>(DType::u64, {2}, {UINT64_MAX, 0})},
                                      between(std::int64_t{1}, UINT64_MAX - 1)),
                ElementsAre(UINT64_MAX - 1, 1u));
}

TEST(Clamp, SaturatesBoundsThatTheTypeCannotHold) {
    EXPECT_THAT(values<int>("clamp", {tensor(DType::u8, {3}, {0, 100, 255})},
                            between(std::int64_t{-5}, std::int64_t{300})),
                ElementsAre(0, 100, 255));
    EXPECT_THAT(values<int>("clamp", {tensor(DType::i8, {2}, {-128, 127})}, between(-kInf, 1e30)),
                ElementsAre(-128, 127));
    EXPECT_THAT(values<int>("clamp", {tensor(DType::u8, {2}, {0, 9})}, {{"max_value", std::int64_t{-5}}}),
                ElementsAre(0, 0));
}

TEST(Clamp, RejectsAMinimumAboveTheMaximum) {
    const TensorType x{DType::f32, {2}}, i{DType::i64, {2}};
    EXPECT_THAT(infer_error("clamp", {x}, between(2.0, 1.0)),
                HasSubstr("min_value 2 is greater than max_value 1"));
    EXPECT_THAT(infer_error("clamp", {i}, between(kBig, kBig - 1)), HasSubstr("9007199254740993"));
    EXPECT_THAT(infer_error("clamp", {i}, between(UINT64_MAX, std::int64_t{-1})), HasSubstr("max_value -1"));
    EXPECT_EQ(infer_error("clamp", {x}, between(1.0, 1.0)), "");
    EXPECT_EQ(infer_error("clamp", {x}, between(kNan, 1.0)), "");
}

TEST(Clamp, WithoutBoundsIsItsInput) {
    const OpDef& def = *find_op("clamp");
    const TensorType x{DType::f32, {2}};
    const TensorType* types[] = {&x};
    EXPECT_EQ(def.same_as(Operands(types), nullptr), 0);
    EXPECT_EQ(def.same_as(Operands(types), def.make_attrs({{"min_value", 0.0}}).value().get()), std::nullopt);
}

}  // namespace
}  // namespace headrace::testing
