#include <gmock/gmock.h>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Integers = std::vector<std::int64_t>;

NamedAttrs to(Shape shape) { return {{"new_shape", std::move(shape)}}; }
NamedAttrs times(Integers repetitions) { return {{"repetitions", std::move(repetitions)}}; }

TEST(Expand, RepeatsUnitExtentsAndAddsLeadingOnes) {
    EXPECT_THAT(values("expand", {tensor(DType::f32, {2, 1}, {1, 2})}, to({2, 2, 3})),
                ElementsAre(1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2));
    EXPECT_THAT(values("expand", {tensor(DType::f32, {1, 2}, {1, 2})}, to({3, 2})),
                ElementsAre(1, 2, 1, 2, 1, 2));
    EXPECT_THAT(values<int>("expand", {tensor(DType::i64, {}, {-3})}, to({2, 1, 2})),
                ElementsAre(-3, -3, -3, -3));
    EXPECT_THAT(values<int>("expand", {tensor(DType::u4, {3, 1}, {1, 2, 15})}, to({3, 3})),
                ElementsAre(1, 1, 1, 2, 2, 2, 15, 15, 15));
    EXPECT_THAT(values("expand", {tensor(DType::f32, {1, 1}, {4})}, to({300, 1})),
                ::testing::AllOf(SizeIs(300), Each(4)));
    EXPECT_THAT(values("expand", {tensor(DType::f32, {1, 2}, {1, 2})}, to({0, 2})), IsEmpty());
}

TEST(Expand, RefusesOtherShapes) {
    EXPECT_EQ(infer_error("expand", {TensorType{DType::f32, {2, 3}}}, to({2, 6})),
              "Incompatible shapes: [2, 3] does not broadcast to [2, 6]");
    EXPECT_THAT(infer_error("expand", {TensorType{DType::f32, {1, 3}}}, to({3})),
                HasSubstr("does not broadcast"));
    EXPECT_THAT(infer_error("expand", {TensorType{DType::f32, {2, 3}}}, to({1, 3})),
                HasSubstr("does not broadcast"));
    const Dim n = Dim::symbolic("n");
    EXPECT_THAT(conditions("expand", {TensorType{DType::f32, {n}}}, to({3})), ElementsAre("n = 3 or n is 1"));
    EXPECT_THAT(infer_error("expand", {TensorType{DType::f32, {Dim::symbolic("k", 4, 8)}}}, to({3})),
                HasSubstr("does not broadcast"));
    EXPECT_EQ(infer("expand", {TensorType{DType::f32, {1, n}}}, to({n, n})).value()[0].str(), "f32[n, n]");
}

TEST(Tile, PutsCopiesSideBySide) {
    EXPECT_THAT(values("tile", {tensor(DType::f32, {2, 2}, {1, 2, 3, 4})}, times({2, 2})),
                ElementsAre(1, 2, 1, 2, 3, 4, 3, 4, 1, 2, 1, 2, 3, 4, 3, 4));
    EXPECT_THAT(values<int>("tile", {tensor(DType::i4, {3}, {1, -2, 3})}, times({3})),
                ElementsAre(1, -2, 3, 1, -2, 3, 1, -2, 3));
    EXPECT_THAT(values("tile", {tensor(DType::f32, {2}, {1, 2})}, times({0})), IsEmpty());
    EXPECT_THAT(values("tile", {tensor(DType::f32, {}, {1})}, times({})), ElementsAre(1));
}

/// NumPy's definition: output index modulo the input's extent, in every dimension.
TEST(Tile, ReadsEveryDimensionModuloItsExtent) {
    std::vector<double> x(24);
    for (int i = 0; i < 24; ++i) x[i] = i;
    std::vector<double> expected;
    for (int a = 0; a < 4; ++a)
        for (int b = 0; b < 3; ++b)
            for (int c = 0; c < 8; ++c)
                for (int d = 0; d < 6; ++d) expected.push_back(((a % 2 * 1 + b % 1) * 4 + c % 4) * 3 + d % 3);
    EXPECT_EQ(values<double>("tile", {tensor(DType::f32, {2, 1, 4, 3}, x)}, times({2, 3, 2, 2})), expected);
}

TEST(Tile, NeedsOneRepetitionPerDimension) {
    const TensorType x{DType::f32, {2, 3}};
    EXPECT_EQ(infer_error("tile", {x}, times({2})),
              "repetitions [2] must have one entry per dimension of [2, 3]");
    EXPECT_EQ(infer_error("tile", {x}, times({1, -1})), "repetitions [1, -1] must not be negative");
    EXPECT_THAT(infer_error("tile", {x}, times({1, INT64_MAX})), HasSubstr("more than the largest integer"));
    const TensorType n{DType::f32, {Dim::symbolic("n", 1, 8)}};
    EXPECT_EQ(infer("tile", {n}, times({3})).value()[0].str(), "f32[3*n]");
    EXPECT_EQ(infer("tile", {n}, times({1})).value()[0].str(), "f32[n]");
    EXPECT_EQ(infer("tile", {x}, {{"repetitions", Shape{n.shape[0], 1}}}).value()[0].str(), "f32[2*n, 3]");
}

}  // namespace
}  // namespace headrace::testing
