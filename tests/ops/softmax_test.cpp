#include <gmock/gmock.h>

#include <cmath>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsNan;
using ::testing::Pointwise;

NamedAttrs axis(std::int64_t a) { return {{"axis", a}}; }

TEST(Softmax, GivesTheKnownProbabilities) {
    const auto y = values<double>("softmax", {tensor(DType::f64, {3}, {1, 2, 3})}, axis(0));
    EXPECT_THAT(y, Pointwise(::testing::DoubleNear(1e-15),
                             {0.09003057317038046, 0.24472847105479767, 0.6652409557748219}));
}

TEST(Softmax, WorksAlongTheGivenAxis) {
    const auto x = tensor(DType::f32, {2, 2}, {0, 10, 0, 10});
    EXPECT_THAT(values("softmax", {x}, axis(0)), Each(0.5f));
    EXPECT_EQ(values("softmax", {x}, axis(-1)), values("softmax", {x}, axis(1)));
    EXPECT_LT(values("softmax", {x}, axis(1))[0], 1e-4f);
    // Between other dimensions: the lines of axis 1 are two elements apart.
    const auto y =
        values("softmax", {tensor(DType::f32, {2, 3, 2}, {0, 1, 0, 2, 0, 3, 5, 0, 5, 0, 5, 0})}, axis(1));
    for (int i : {0, 2, 4, 6, 8, 10}) EXPECT_FLOAT_EQ(y[i], 1.0f / 3) << i;
    EXPECT_NEAR(y[5], 0.66524096, 1e-6);
}

TEST(Softmax, DoesNotOverflow) {
    EXPECT_THAT(values("softmax", {tensor(DType::f16, {2}, {60000, 60000})}, axis(0)), ElementsAre(0.5, 0.5));
    EXPECT_THAT(values("softmax", {tensor(DType::f32, {3}, {-INFINITY, 3e38, 3e38})}, axis(0)),
                ElementsAre(0, 0.5, 0.5));
}

TEST(Softmax, OfAnUndefinedRowIsNaN) {
    for (const auto& row :
         std::vector<std::vector<double>>{{-INFINITY, -INFINITY}, {INFINITY, INFINITY}, {NAN, 1}, {1, NAN}})
        EXPECT_THAT(values("softmax", {tensor(DType::f32, {2}, row)}, axis(0)), Each(IsNan())) << row[0];
}

TEST(Softmax, OfNothingIsNothing) {
    EXPECT_TRUE(values("softmax", {tensor(DType::f32, {2, 0}, {})}, axis(1)).empty());
    EXPECT_TRUE(values("softmax", {tensor(DType::f32, {0, 2}, {})}, axis(1)).empty());
}

TEST(Softmax, NeedsAnAxisWithinTheRank) {
    const TensorType x{DType::f32, {2, 3}};
    EXPECT_EQ(infer_error("softmax", {x}, axis(2)), "Axis 2 out of bounds for rank 2");
    EXPECT_THAT(infer_error("softmax", {{{DType::f32, {}}}}, axis(0)), HasSubstr("out of bounds"));
    EXPECT_THAT(infer_error("softmax", {x}, {}), HasSubstr("axis is missing"));
    EXPECT_THAT(infer_error("softmax", {{{DType::i32, {2}}}}, axis(0)), HasSubstr("i32"));
    const Dim n = Dim::symbolic("n");
    EXPECT_EQ(infer("softmax", {{{DType::f32, {n, 3}}}}, axis(0)).value()[0].shape, (Shape{n, 3}));
}

}  // namespace
}  // namespace headrace::testing
