#include <gmock/gmock.h>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const TestTensor kTable = tensor(DType::f32, {3, 2}, {1, 2, 3, 4, 5, 6});

TEST(Gather, TakesOneSlicePerIndex) {
    const auto out = run("gather", {kTable, tensor(DType::i32, {1, 2}, {2, 0})});
    EXPECT_EQ(out[0].type.str(), "f32[1, 2, 2]");
    EXPECT_THAT(out[0].as<float>(), ElementsAre(5, 6, 1, 2));
    EXPECT_THAT(values("gather", {kTable, tensor(DType::i64, {3}, {1, 0, 1})}, along(1)),
                ElementsAre(2, 1, 2, 4, 3, 4, 6, 5, 6));
    const auto one = run("gather", {kTable, tensor(DType::u32, {}, {1})}, along(-1));
    EXPECT_EQ(one[0].type.str(), "f32[3]");
    EXPECT_THAT(one[0].as<float>(), ElementsAre(2, 4, 6));
}

TEST(Gather, CountsNegativeIndicesFromTheEndAndClampsTheRest) {
    const auto indices = tensor<std::int64_t>(DType::i64, {6}, {-1, -3, -4, 3, INT64_MIN, INT64_MAX});
    EXPECT_THAT(values("gather", {tensor(DType::f32, {3}, {1, 2, 3}), indices}),
                ElementsAre(3, 1, 1, 3, 1, 3));
    EXPECT_THAT(
        values("gather", {tensor(DType::f32, {3}, {1, 2, 3}), tensor(DType::u32, {1}, {4294967295.0})}),
        ElementsAre(3));
}

TEST(Gather, MovesNibblesAndTakesNoIndices) {
    EXPECT_THAT(values<int>("gather", {tensor(DType::i4, {3, 3}, {1, 2, 3, 4, 5, 6, 7, -8, -1}),
                                       tensor(DType::i32, {2}, {2, 0})}),
                ElementsAre(7, -8, -1, 1, 2, 3));
    EXPECT_THAT(values("gather", {kTable, tensor(DType::i32, {0}, {})}), IsEmpty());
}

TEST(Gather, RefusesWrongAxesDtypesAndEmptyDimensions) {
    const TensorType x{DType::f32, {3, 2}}, i{DType::i32, {4}};
    EXPECT_EQ(infer_error("gather", {x, i}, along(2)), "Axis 2 out of bounds for rank 2");
    EXPECT_THAT(infer_error("gather", {x, TensorType{DType::f32, {4}}}),
                HasSubstr("operand indices is f32[4]"));
    EXPECT_EQ(infer_error("gather", {TensorType{DType::f32, {0, 2}}, i}),
              "dimension 0 of input [0, 2] is empty and cannot be indexed");
    EXPECT_THAT(
        infer_error("gather", {TensorType{DType::f32, Shape(5, 2)}, TensorType{DType::i32, Shape(5, 2)}}),
        HasSubstr("exceeds 8"));
    const Dim n = Dim::symbolic("n");
    EXPECT_EQ(infer("gather", {x, TensorType{DType::i64, {n, 7}}}).value()[0].str(), "f32[n, 7, 2]");
}

TEST(GatherElements, ReplacesThePlaceAlongTheAxis) {
    EXPECT_THAT(values("gather_elements", {kTable, tensor(DType::i32, {2, 2}, {0, 2, 1, -1})}),
                ElementsAre(1, 6, 3, 6));
    EXPECT_THAT(values("gather_elements", {kTable, tensor(DType::i64, {3, 3}, {0, 1, 9, 1, 0, 1, -9, 0, 1})},
                       along(1)),
                ElementsAre(1, 2, 2, 4, 3, 4, 5, 5, 6));
    EXPECT_THAT(
        values<int>("gather_elements", {tensor(DType::u4, {3}, {1, 2, 15}), tensor(DType::i32, {2}, {2, 0})}),
        ElementsAre(15, 1));
}

TEST(GatherElements, AllowsFewerIndicesButNotMoreOutsideTheAxis) {
    EXPECT_THAT(values("gather_elements", {kTable, tensor(DType::i32, {1, 1}, {1})}, along(1)),
                ElementsAre(2));
    EXPECT_EQ(infer_error("gather_elements", {kTable.type, TensorType{DType::i32, {4, 2}}}, along(1)),
              "Shape mismatch: indices [4, 2] exceed input [3, 2] in dimension 0, only axis 1 is free");
    EXPECT_EQ(infer_error("gather_elements", {kTable.type, TensorType{DType::i32, {3}}}),
              "Shape mismatch: indices [3] must have the rank of input [3, 2]");
    const Dim n = Dim::symbolic("n");
    EXPECT_THAT(conditions("gather_elements", {kTable.type, TensorType{DType::i32, {1, n}}}),
                ElementsAre("2 >= n"));
    EXPECT_THAT(
        infer_error("gather_elements", {kTable.type, TensorType{DType::i32, {1, Dim::symbolic("k", 3, 9)}}}),
        HasSubstr("exceed"));
}

TEST(GatherNd, ReadsTheSliceAtEveryTuple) {
    const auto cube = tensor(DType::f32, {2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
    const auto out = run("gather_nd", {cube, tensor(DType::i32, {3, 2}, {0, 1, 1, 0, -1, -1})});
    EXPECT_EQ(out[0].type.str(), "f32[3, 2]");
    EXPECT_THAT(out[0].as<float>(), ElementsAre(3, 4, 5, 6, 7, 8));
    EXPECT_THAT(values("gather_nd", {cube, tensor(DType::i32, {3}, {1, 0, 7})}), ElementsAre(6));
    EXPECT_THAT(values("gather_nd", {cube, tensor(DType::i64, {1, 0}, {})}),
                ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
}

TEST(GatherNd, NeedsTuplesThatFitTheInput) {
    EXPECT_EQ(infer_error("gather_nd", {kTable.type, TensorType{DType::i32, {4, 3}}}),
              "the last extent of indices [4, 3] must be at most 2, the rank of input [3, 2]");
    EXPECT_EQ(infer_error("gather_nd", {kTable.type, TensorType{DType::i32, {Dim::symbolic("k")}}}),
              "the last extent k of indices [k] must be known");
    EXPECT_THAT(infer_error("gather_nd", {TensorType{DType::f32, {2, 0}}, TensorType{DType::i32, {1, 2}}}),
                HasSubstr("dimension 1 of input [2, 0] is empty"));
}

}  // namespace
}  // namespace headrace::testing
