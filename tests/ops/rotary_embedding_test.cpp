#include <gmock/gmock.h>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const NamedAttrs kInterleaved{{"interleaved", true}};

TEST(RotaryEmbedding, TurnsHalvesByAQuarter) {
    const auto x = tensor(DType::f32, {4}, {1, 2, 3, 4}), zero = tensor(DType::f32, {4}, {0, 0, 0, 0}),
               one = tensor(DType::f32, {4}, {1, 1, 1, 1});
    EXPECT_THAT(values("rotary_embedding", {x, one, zero}), ElementsAre(1, 2, 3, 4));
    EXPECT_THAT(values("rotary_embedding", {x, zero, one}), ElementsAre(-3, -4, 1, 2));
    EXPECT_THAT(values("rotary_embedding", {x, zero, one}, kInterleaved), ElementsAre(-2, 1, -4, 3));
}

TEST(RotaryEmbedding, ReadsAnAngleForEachPositionOfEveryHead) {
    // [heads 2, positions 2, width 2]; the second position is turned by a quarter.
    const auto x = tensor(DType::f32, {2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
    const auto cos = tensor(DType::f32, {2, 2}, {1, 1, 0, 0}), sin = tensor(DType::f32, {2, 2}, {0, 0, 1, 1});
    EXPECT_THAT(values("rotary_embedding", {x, cos, sin}), ElementsAre(1, 2, -4, 3, 5, 6, -8, 7));
    EXPECT_THAT(values("rotary_embedding", {x, cos, sin}, kInterleaved),
                ElementsAre(1, 2, -4, 3, 5, 6, -8, 7));
}

TEST(RotaryEmbedding, LeavesOpenWidthsToARun) {
    const TensorType open{DType::f32, {3, Dim::symbolic("n")}}, angles{DType::f32, {Dim::symbolic("m")}},
        even{DType::f32, {Dim::of(Expression::symbol("n") * 2)}};
    EXPECT_THAT(conditions("rotary_embedding", {open, angles, angles}),
                ElementsAre("n = 2*(n//2)", "m = n", "m = n or m is 1"));
    EXPECT_THAT(conditions("rotary_embedding", {even, even, even}), ElementsAre());
}

TEST(RotaryEmbedding, RefusesOddRowsAndAnglesThatDoNotFit) {
    const auto x = tensor(DType::f32, {2, 2}, {1, 2, 3, 4}), odd = tensor(DType::f32, {3}, {1, 2, 3}),
               angles = tensor(DType::f32, {3, 2}, {1, 2, 3, 4, 5, 6}), row = tensor(DType::f32, {2}, {1, 2});
    EXPECT_THAT(error("rotary_embedding", {odd, odd, odd}), HasSubstr("must be an even number"));
    EXPECT_THAT(error("rotary_embedding", {x, angles, angles}), HasSubstr("cos has shape [3, 2]"));
    EXPECT_THAT(error("rotary_embedding", {x, row, x}), HasSubstr("cos has shape [2] but sin has [2, 2]"));
}

}  // namespace
}  // namespace headrace::testing
