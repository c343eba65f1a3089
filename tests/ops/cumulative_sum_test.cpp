#include <gmock/gmock.h>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

NamedAttrs attrs(std::int64_t axis, bool exclusive = false, bool reversed = false) {
    return {{"axis", axis}, {"exclusive", exclusive}, {"reversed", reversed}};
}

TEST(CumulativeSum, RunsForwardsAndBackwardsWithAndWithoutTheElementItself) {
    const auto x = tensor(DType::f32, {4}, {1, 2, 3, 4});
    EXPECT_THAT(values("cumulative_sum", {x}, attrs(0)), ElementsAre(1, 3, 6, 10));
    EXPECT_THAT(values("cumulative_sum", {x}, attrs(0, true)), ElementsAre(0, 1, 3, 6));
    EXPECT_THAT(values("cumulative_sum", {x}, attrs(0, false, true)), ElementsAre(10, 9, 7, 4));
    EXPECT_THAT(values("cumulative_sum", {x}, attrs(0, true, true)), ElementsAre(9, 7, 4, 0));
}

TEST(CumulativeSum, RunsAlongAnyAxis) {
    const auto x = tensor(DType::i32, {2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
    EXPECT_THAT(values<int>("cumulative_sum", {x}, attrs(0)), ElementsAre(1, 2, 3, 4, 6, 8, 10, 12));
    EXPECT_THAT(values<int>("cumulative_sum", {x}, attrs(1)), ElementsAre(1, 2, 4, 6, 5, 6, 12, 14));
    EXPECT_THAT(values<int>("cumulative_sum", {x}, attrs(-1, false, true)),
                ElementsAre(3, 2, 7, 4, 11, 6, 15, 8));
}

TEST(CumulativeSum, WrapsIntegersAndDoesNotAccumulateRoundingErrors) {
    EXPECT_THAT(values<int>("cumulative_sum", {tensor(DType::i8, {3}, {127, 1, 1})}, attrs(0)),
                ElementsAre(127, -128, -127));
    EXPECT_THAT(values("cumulative_sum", {tensor(DType::f16, {3}, {2048, 1, 1})}, attrs(0)),
                ElementsAre(2048, 2048, 2050));
}

TEST(CumulativeSum, AcceptsEmptyTensors) {
    EXPECT_TRUE(values("cumulative_sum", {tensor(DType::f32, {2, 0}, {})}, attrs(1)).empty());
}

TEST(CumulativeSum, RejectsBadAxes) {
    EXPECT_THAT(infer_error("cumulative_sum", {TensorType{DType::f32, {2}}}, attrs(1)),
                HasSubstr("Axis 1 out of bounds for rank 1"));
    EXPECT_THAT(infer_error("cumulative_sum", {TensorType{DType::f32, {2}}}), HasSubstr("axis is missing"));
    EXPECT_THAT(infer_error("cumulative_sum", {TensorType{DType::boolean, {2}}}, attrs(0)),
                HasSubstr("bool"));
}

}  // namespace
}  // namespace headrace::testing
