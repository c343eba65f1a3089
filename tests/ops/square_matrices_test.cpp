#include <gmock/gmock.h>

#include <cmath>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pointwise;

TEST(MatrixInverse, IsOfEachMatrix) {
    const auto x = tensor(DType::f32, {2, 2, 2}, {2, 1, 1, 1, 4, 0, 0, 0.5});
    EXPECT_THAT(values("matrix_inverse", {x}), ElementsAre(1, -1, -1, 2, 0.25, 0, 0, 2));
}

/// The first element of the first column is 0, so that rows are exchanged.
TEST(MatrixInverse, TakesTheLargestElementAsAPivot) {
    const auto x = tensor(DType::f64, {3, 3}, {0, 2, 0, 4, 0, 0, 0, 0, 8});
    EXPECT_THAT(values<double>("matrix_inverse", {x}), ElementsAre(0, 0.25, 0, 0.5, 0, 0, 0, 0, 0.125));
}

TEST(MatrixInverse, TimesTheMatrixIsTheIdentity) {
    constexpr int kSize = 7;
    std::vector<double> x;
    for (int i = 0; i < kSize * kSize; ++i) x.push_back(std::sin(i * i) + (i % (kSize + 1) == 0 ? 3 : 0));
    const auto inverse = values<double>("matrix_inverse", {tensor(DType::f64, {kSize, kSize}, x)});
    for (int row = 0; row < kSize; ++row)
        for (int column = 0; column < kSize; ++column) {
            double sum = 0;
            for (int k = 0; k < kSize; ++k) sum += x[row * kSize + k] * inverse[k * kSize + column];
            EXPECT_NEAR(sum, row == column ? 1 : 0, 1e-12);
        }
}

TEST(MatrixInverse, OfAMatrixWithoutOneIsNotFinite) {
    for (const float v : values("matrix_inverse", {tensor(DType::f32, {2, 2}, {1, 2, 2, 4})}))
        EXPECT_FALSE(std::isfinite(v));
}

TEST(MatrixInverse, OfNothingIsNothing) {
    EXPECT_THAT(values("matrix_inverse", {tensor(DType::f32, {0, 3, 3}, {})}), IsEmpty());
    EXPECT_THAT(values("matrix_inverse", {tensor(DType::f32, {2, 0, 0}, {})}), IsEmpty());
}

TEST(Determinant, ChangesItsSignWithTheRows) {
    const auto x = tensor(DType::f32, {3, 2, 2}, {1, 2, 3, 4, 3, 4, 1, 2, 1, 2, 2, 4});
    EXPECT_THAT(values("determinant", {x}), Pointwise(::testing::FloatNear(1e-6F), {-2.0F, 2.0F, 0.0F}));
}

TEST(Determinant, OfTriangularMatricesIsTheirDiagonalsProduct) {
    const auto x = tensor(DType::f64, {4, 4}, {2, 0, 0, 0, 7, 3, 0, 0, 1, 5, 4, 0, 9, 9, 9, 5});
    EXPECT_THAT(values<double>("determinant", {x}), Pointwise(::testing::DoubleNear(1e-9), {120.0}));
    EXPECT_THAT(values("determinant", {tensor(DType::f32, {2, 0, 0}, {})}), ElementsAre(1, 1));
}

TEST(Determinant, PassesOnWhatIsNoNumber) {
    const double nan = std::nan("");
    const auto x = tensor(DType::f32, {2, 2}, {0, 1, nan, 1});
    EXPECT_TRUE(std::isnan(values("determinant", {x})[0]));
}

TEST(SquareMatrices, NameAShapeThatIsNone) {
    for (const char* op : {"matrix_inverse", "determinant"}) {
        EXPECT_THAT(infer_error(op, {TensorType{DType::f32, {4, 2, 3}}}),
                    HasSubstr("matrices of 2 x 3 are not square"));
        const Dim n = Dim::named("n", 1, 9), m = Dim::named("m", 1, 9);
        EXPECT_THAT(conditions(op, {TensorType{DType::f32, {n, n}}}), IsEmpty());
        EXPECT_THAT(conditions(op, {TensorType{DType::f32, {n, m}}}), ::testing::SizeIs(1));
    }
}

}  // namespace
}  // namespace headrace::testing
