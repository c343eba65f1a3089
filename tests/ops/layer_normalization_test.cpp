#include <gmock/gmock.h>

#include <cmath>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Axes = std::vector<std::int64_t>;
const NamedAttrs kNoEpsilon{{"epsilon", 0.0}};

TEST(LayerNormalization, GivesMeanZeroAndVarianceOne) {
    // Deviations of ±1 and ±3 have variance 5.
    const double s = 1 / std::sqrt(5.0);
    const auto y =
        values<double>("layer_normalization", {tensor(DType::f64, {1, 4}, {2, 4, 6, 8})}, kNoEpsilon);
    EXPECT_THAT(y, ::testing::Pointwise(::testing::DoubleNear(1e-14), {-3 * s, -s, s, 3 * s}));
}

TEST(LayerNormalization, ScalesAndShiftsInEveryFloatType) {
    for (DType t : {DType::f32, DType::f16, DType::bf16, DType::f64})
        EXPECT_THAT(
            values("layer_normalization",
                   {tensor(t, {2, 2}, {1, 3, -8, -4}), tensor(t, {2}, {2, 4}), tensor(t, {2}, {0.5, -1})},
                   kNoEpsilon),
            ElementsAre(-1.5, 3, -1.5, 3))
            << name_of(t);
}

TEST(LayerNormalization, NormalizesAllButTheFirstAxisByDefault) {
    const auto x = tensor(DType::f32, {2, 2, 2}, {1, 2, 3, 10, 5, 6, 8, 2});
    EXPECT_EQ(values("layer_normalization", {x}), values("layer_normalization", {x}, {{"axes", Axes{1, 2}}}));
    EXPECT_NE(values("layer_normalization", {x}), values("layer_normalization", {x}, {{"axes", Axes{2}}}));
    // A vector has no axis left, so every value is its own mean.
    EXPECT_THAT(values("layer_normalization", {tensor(DType::f32, {3}, {1, 2, 3})}), ElementsAre(0, 0, 0));
}

TEST(LayerNormalization, ReadsScaleAndBiasInTheOrderOfTheAxes) {
    // x[i][j] normalised over both axes is ±1; scale is indexed [j][i] because axis 1 comes first.
    const auto x = tensor(DType::f32, {2, 3}, {1, 1, 1, 3, 3, 3});
    EXPECT_THAT(values("layer_normalization",
                       {x, tensor(DType::f32, {3, 2}, {1, 2, 3, 4, 5, 6}),
                        tensor(DType::f32, {3, 2}, {0, 0, 0, 0, 0, 9})},
                       {{"axes", Axes{1, 0}}, {"epsilon", 0.0}}),
                ElementsAre(-1, -3, -5, 2, 4, 15));
}

TEST(LayerNormalization, OverLeadingAxesNormalizesColumns) {
    EXPECT_THAT(values("layer_normalization", {tensor(DType::f32, {2, 2}, {1, 10, 3, 30})},
                       {{"axes", Axes{-2}}, {"epsilon", 0.0}}),
                ElementsAre(-1, -1, 1, 1));
}

TEST(LayerNormalization, OverNoAxesLeavesOnlyTheBias) {
    EXPECT_THAT(values("layer_normalization",
                       {tensor(DType::f32, {2, 1}, {5, -7}), tensor(DType::f32, {}, {3}),
                        tensor(DType::f32, {}, {0.5})},
                       {{"axes", Axes{}}}),
                ElementsAre(0.5, 0.5));
}

TEST(LayerNormalization, KeepsPrecisionFarFromZero) {
    const auto y =
        values("layer_normalization", {tensor(DType::f32, {1, 2}, {1000000, 1000001})}, kNoEpsilon);
    EXPECT_THAT(y, ElementsAre(-1, 1));
}

TEST(LayerNormalization, AddsEpsilonToTheVariance) {
    const auto y = values("layer_normalization", {tensor(DType::f32, {1, 2}, {-1, 1})}, {{"epsilon", 3.0}});
    EXPECT_THAT(y, ElementsAre(-0.5, 0.5));
}

TEST(LayerNormalization, OfEmptyTensorsIsEmpty) {
    EXPECT_TRUE(values("layer_normalization", {tensor(DType::f32, {2, 0}, {})}).empty());
    EXPECT_TRUE(values("layer_normalization", {tensor(DType::f32, {0, 2}, {})}).empty());
}

TEST(LayerNormalization, RejectsWrongAxesAndVectors) {
    EXPECT_EQ(infer_error("layer_normalization", {f32({2, 3})}, {{"axes", Axes{2}}}),
              "Axis 2 out of bounds for rank 2");
    EXPECT_EQ(infer_error("layer_normalization", {f32({2, 3})}, {{"axes", Axes{1, -1}}}),
              "Duplicate axis -1");
    EXPECT_EQ(infer_error("layer_normalization", {f32({2, 3, 4}), f32({4, 3})}),
              "scale has shape [4, 3] but the normalised axes have [3, 4]");
    EXPECT_EQ(infer_error("layer_normalization", {f32({2, 3}), std::nullopt, f32({2})}),
              "bias has shape [2] but the normalised axes have [3]");
    EXPECT_THAT(infer_error("layer_normalization", {f32({2, 3}), {{DType::f16, {3}}}}), HasSubstr("f16"));
    const Dim n = Dim::symbolic("n");
    EXPECT_EQ(infer("layer_normalization", {f32({2, n}), f32({n})}).value()[0], f32({2, n}));
}

}  // namespace
}  // namespace headrace::testing
