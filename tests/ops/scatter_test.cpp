#include <gmock/gmock.h>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const TestTensor kZeros = tensor(DType::f32, {3, 3}, std::vector<double>(9));

TEST(ScatterElements, ReplacesOneElementPerIndex) {
    const auto indices = tensor(DType::i32, {2, 3}, {1, 0, 2, 0, 2, 1});
    const auto updates = tensor(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6});
    EXPECT_THAT(values("scatter_elements", {kZeros, indices, updates}),
                ElementsAre(4, 2, 0, 1, 0, 6, 0, 5, 3));
    EXPECT_THAT(values("scatter_elements", {kZeros, indices, updates}, along(1)),
                ElementsAre(2, 1, 3, 4, 6, 5, 0, 0, 0));
}

TEST(ScatterElements, ClampsIndicesAndLetsTheLastUpdateWin) {
    const auto x = tensor(DType::i64, {4}, {1, 2, 3, 4});
    EXPECT_THAT(values<int>("scatter_elements", {x, tensor(DType::i64, {5}, {-1, 9, -9, 1, 1}),
                                                 tensor(DType::i64, {5}, {10, 11, 12, 13, 14})}),
                ElementsAre(12, 14, 3, 11));
    EXPECT_THAT(values<int>("scatter_elements", {tensor(DType::i4, {3}, {1, 2, 3}),
                                                 tensor(DType::i32, {1}, {1}), tensor(DType::i4, {1}, {-7})}),
                ElementsAre(1, -7, 3));
}

TEST(ScatterElements, NeedsEqualIndicesAndUpdates) {
    const TensorType x{DType::f32, {3, 3}}, i{DType::i32, {2, 3}};
    EXPECT_EQ(infer_error("scatter_elements", {x, i, TensorType{DType::f32, {3, 2}}}),
              "Shape mismatch: indices [2, 3] and updates [3, 2] must be equal");
    EXPECT_THAT(infer_error("scatter_elements", {x, i, TensorType{DType::i32, {2, 3}}}),
                HasSubstr("same dtype"));
    EXPECT_THAT(
        infer_error("scatter_elements", {x, TensorType{DType::i32, {3, 4}}, TensorType{DType::f32, {3, 4}}}),
        HasSubstr("exceed input [3, 3] in dimension 1"));
    EXPECT_THAT(infer_error("scatter_elements", {x, i, TensorType{DType::f32, {2, 3}}}, along(-3)),
                HasSubstr("Axis -3 out of bounds for rank 2"));
}

TEST(ScatterNd, ReplacesSlicesAtTuples) {
    EXPECT_THAT(values("scatter_nd", {kZeros, tensor(DType::i32, {2, 1}, {2, 0}),
                                      tensor(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6})}),
                ElementsAre(4, 5, 6, 0, 0, 0, 1, 2, 3));
    EXPECT_THAT(values("scatter_nd", {kZeros, tensor(DType::i64, {3, 2}, {1, 1, -1, -1, 1, 1}),
                                      tensor(DType::f32, {3}, {7, 8, 9})}),
                ElementsAre(0, 0, 0, 0, 9, 0, 0, 0, 8));
    EXPECT_THAT(values("scatter_nd", {kZeros, tensor(DType::u32, {2}, {9, 0}), tensor(DType::f32, {}, {5})}),
                ElementsAre(0, 0, 0, 0, 0, 0, 5, 0, 0));
}

/// Slices that cross the border between two threads' parts of the output.
TEST(ScatterNd, WritesLongSlicesFromSeveralThreads) {
    std::vector<double> x(4 * 100), updates(200), expected(4 * 100);
    for (int i = 0; i < 400; ++i) x[i] = expected[i] = i;
    for (int i = 0; i < 200; ++i)
        expected[(i < 100 ? 300 : 0) + i % 100 + (i < 100 ? 0 : 100)] = updates[i] = -1 - i;
    EXPECT_EQ(
        values<double>("scatter_nd", {tensor(DType::f32, {4, 100}, x), tensor(DType::i32, {2, 1}, {3, 1}),
                                      tensor(DType::f32, {2, 100}, updates)}),
        expected);
}

TEST(ScatterNd, SaysWhichShapeTheUpdatesNeed) {
    EXPECT_EQ(
        infer_error("scatter_nd", {kZeros.type, TensorType{DType::i32, {2, 1}}, TensorType{DType::f32, {2}}}),
        "Shape mismatch: updates are [2], input [3, 3] and indices [2, 1] need [2, 3]");
    EXPECT_THAT(
        infer_error("scatter_nd", {kZeros.type, TensorType{DType::i32, {2, 3}}, TensorType{DType::f32, {2}}}),
        HasSubstr("must be at most 2, the rank of input [3, 3]"));
}

}  // namespace
}  // namespace headrace::testing
