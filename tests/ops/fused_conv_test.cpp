#include <gmock/gmock.h>

#include <cmath>

#include "ops/images.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Pixels -3, -1, 2 and 5 doubled, with a bias of 1: -5, -1, 5 and 11; residuals 10, -10, 3 and -30.
std::vector<double> fused(const NamedAttrs& attrs) {
    return values<double>(
        "fused_conv2d",
        {tensor(DType::f64, {1, 1, 2, 2}, {-3, -1, 2, 5}), tensor(DType::f64, {1, 1, 1, 1}, {2}),
         tensor(DType::f64, {1}, {1}), tensor(DType::f64, {1, 1, 2, 2}, {10, -10, 3, -30})},
        attrs);
}

TEST(FusedConv2d, AddsTheResidualAfterTheActivation) {
    EXPECT_THAT(fused({}), ElementsAre(5, -11, 8, -19));
    EXPECT_THAT(fused({{"activation", std::string("relu")}}), ElementsAre(10, -10, 8, -19));
    EXPECT_THAT(fused({{"min_value", -2.0}, {"max_value", 6.0}}), ElementsAre(8, -11, 8, -24));
}

TEST(FusedConv2d, AddsTheResidualBeforeTheActivationWhenAsked) {
    EXPECT_THAT(fused({{"residual_first", true}, {"activation", std::string("relu")}}),
                ElementsAre(5, 0, 8, 0));
    EXPECT_THAT(fused({{"residual_first", true}, {"min_value", -12.0}, {"max_value", 6.0}}),
                ElementsAre(5, -11, 6, -12));
}

TEST(FusedConv2d, LimitsWhatReluGives) {
    EXPECT_THAT(fused({{"residual_first", true}, {"activation", std::string("relu")}, {"max_value", 6.0}}),
                ElementsAre(5, 0, 6, 0));
    EXPECT_THAT(fused({{"residual_first", true}, {"activation", std::string("relu")}, {"min_value", 1.0}}),
                ElementsAre(5, 1, 8, 1));
}

TEST(FusedConv2d, AppliesEachActivation) {
    const auto expect = [](const char* f, double first, double second) {
        const auto y = values<double>(
            "fused_conv2d",
            {tensor(DType::f64, {1, 1, 1, 2}, {0.7, -1.4}), tensor(DType::f64, {1, 1, 1, 1}, {1})},
            {{"activation", std::string(f)}});
        EXPECT_NEAR(y[0], first, 1e-12) << f;
        EXPECT_NEAR(y[1], second, 1e-12) << f;
    };
    // From the C library, by erfc.
    expect("none", 0.7, -1.4);
    expect("relu", 0.7, 0);
    expect("gelu", 0.5306254434438489, -0.11305932292727951);
    expect("tanh", 0.6043677771171636, -0.8853516482022625);
    expect("sigmoid", 0.668187772168166, 0.19781611144141822);
    expect("silu", 0.4677314405177162, -0.2769425560179855);
}

TEST(FusedConv2d, KeepsNaNWithinLimits) {
    const auto y = values<double>(
        "fused_conv2d", {tensor(DType::f64, {1, 1, 1, 2}, {NAN, 9}), tensor(DType::f64, {1, 1, 1, 1}, {1})},
        {{"min_value", 0.0}, {"max_value", 6.0}});
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_EQ(y[1], 6);
}

TEST(FusedConv2d, IsConv2dInEveryLayout) {
    const auto x = scattered(DType::f32, {2, 3, 4, 5}), f = scattered(DType::f32, {4, 3, 2, 3}, 1);
    const auto bias = tensor(DType::f32, {4}, {1, 2, 3, 4});
    const auto expected = values("conv2d", {x, f, bias});
    EXPECT_EQ(values("fused_conv2d", {x, f, bias}), expected);
    const auto nhwc = run("fused_conv2d", {permuted(x, kToNhwc), permuted(f, {2, 3, 1, 0}), bias},
                          {{"input_layout", std::string("nhwc")}, {"filter_layout", std::string("hwio")}});
    EXPECT_EQ(permuted(nhwc[0], kToNchw).as<float>(), expected);
}

TEST(FusedConv2d, RejectsWhatDoesNotFit) {
    const TensorType x = f32({1, 4, 5, 5}), f = f32({6, 4, 3, 3});
    EXPECT_EQ(infer_error("fused_conv2d", {x, f, std::nullopt, f32({1, 6, 5, 5})}),
              "residual has shape [1, 6, 5, 5] but the convolution has shape [1, 6, 3, 3]");
    EXPECT_EQ(infer_error("fused_conv2d", {x, f, f32({4})}),
              "bias has shape [4] but the filter has 6 output channels");
    EXPECT_EQ(infer_error("fused_conv2d", {x, f}, {{"min_value", 2.0}, {"max_value", 1.0}}),
              "min_value 2 and max_value 1 are no range");
    EXPECT_THAT(infer_error("fused_conv2d", {x, f}, {{"min_value", NAN}}), HasSubstr("no range"));
    EXPECT_EQ(infer_error("fused_conv2d", {x, f}, {{"activation", std::string("silu")}, {"max_value", 1.0}}),
              "min_value and max_value go with the activations none and relu only, not with silu");
}

}  // namespace
}  // namespace headrace::testing
