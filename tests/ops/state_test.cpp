#include <gmock/gmock.h>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

NamedAttrs at(std::int64_t offset) { return {{"offset", offset}}; }

TEST(Assign, GivesTheStateTheValue) {
    EXPECT_THAT(values<int>("assign", {tensor(DType::u8, {3}, {1, 2, 3}), tensor(DType::u8, {3}, {7, 8, 9})}),
                ElementsAre(7, 8, 9));
    EXPECT_THAT(
        values<int>("assign", {tensor(DType::i4, {3}, {1, 2, 3}), tensor(DType::i4, {3}, {7, -8, -1})}),
        ElementsAre(7, -8, -1));
}

TEST(Assign, NeedsTheStatesTypeExactly) {
    EXPECT_EQ(infer_error("assign", {TensorType{DType::f32, {2, 3}}, TensorType{DType::f32, {3, 2}}}),
              "Shape mismatch: the state is [2, 3], the value [3, 2]");
    EXPECT_THAT(infer_error("assign", {TensorType{DType::f32, {2}}, TensorType{DType::f16, {2}}}),
                HasSubstr("same dtype"));
}

TEST(Accumulate, AddsIntoTheFlattenedDestination) {
    const auto state = tensor(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6});
    const auto out = run("accumulate", {state, tensor(DType::f32, {3}, {10, 20, 30})}, at(2));
    EXPECT_EQ(out[0].type.str(), "f32[2, 3]");
    EXPECT_THAT(out[0].as<float>(), ElementsAre(1, 2, 13, 24, 35, 6));
    EXPECT_THAT(values("accumulate", {state, tensor(DType::f32, {}, {1})}), ElementsAre(2, 2, 3, 4, 5, 6));
    EXPECT_THAT(values("accumulate", {state, tensor(DType::f32, {0}, {})}, at(6)),
                ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(Accumulate, WrapsIntegersAndRoundsHalfFloatsOnce) {
    EXPECT_THAT(
        values<int>("accumulate", {tensor(DType::i8, {2}, {127, -128}), tensor(DType::i8, {2}, {1, -1})}),
        ElementsAre(-128, 127));
    const auto least = tensor<std::int64_t>(DType::i64, {1}, {INT64_MAX});
    EXPECT_THAT(values<std::int64_t>("accumulate", {least, tensor<std::int64_t>(DType::i64, {1}, {1})}),
                ElementsAre(INT64_MIN));
    // 2048 + 1 lies between two halves and goes to the even one.
    EXPECT_THAT(
        values("accumulate", {tensor(DType::f16, {2}, {2048, 2050}), tensor(DType::f16, {2}, {1, 1})}),
        ElementsAre(2048, 2052));
}

TEST(Accumulate, NamesOffsetAndCountsWhenOutOfBounds) {
    const TensorType state{DType::f32, {2, 3}}, two{DType::f32, {2}};
    EXPECT_EQ(infer_error("accumulate", {state, two}, at(5)),
              "offset 5 and the source's 2 elements [2] are out of bounds for the destination's 6 [2, 3]");
    EXPECT_EQ(infer_error("accumulate", {state, two}, at(4)), "");
    EXPECT_EQ(infer_error("accumulate", {state, two}, at(-1)), "offset -1 must not be negative");
    EXPECT_THAT(infer_error("accumulate", {state, two}, at(INT64_MAX)), HasSubstr("out of bounds"));
    EXPECT_THAT(infer_error("accumulate", {state, TensorType{DType::i32, {2}}}), HasSubstr("same dtype"));
}

TEST(Accumulate, LeavesSymbolicBoundsToTheirBinding) {
    const TensorType state{DType::f32, {8}};
    EXPECT_EQ(infer_error("accumulate", {state, TensorType{DType::f32, {Dim::symbolic("n", 1, 100)}}}, at(7)),
              "");
    EXPECT_THAT(
        conditions("accumulate", {state, TensorType{DType::f32, {Dim::symbolic("n", 1, 100)}}}, at(7)),
        ElementsAre("8 >= (n+7)"));
    EXPECT_THAT(
        infer_error("accumulate", {state, TensorType{DType::f32, {Dim::symbolic("n", 2, 100)}}}, at(7)),
        HasSubstr("offset 7 and the source's 2 elements [n]"));
}

TEST(StateOps, WriteTheirFirstOperandInPlace) {
    for (const char* name : {"assign", "accumulate"}) {
        EXPECT_EQ(find_op(name)->writes_state, 0) << name;
        EXPECT_FALSE(find_op(name)->is_pure()) << name;
    }
}

}  // namespace
}  // namespace headrace::testing
