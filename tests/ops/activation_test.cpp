#include <gmock/gmock.h>

#include <cmath>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;

std::vector<float> apply(std::string_view op, const std::vector<double>& x, const NamedAttrs& named = {},
                         DType t = DType::f32) {
    return values(op, {tensor(t, {static_cast<std::int64_t>(x.size())}, x)}, named);
}

TEST(Activation, LeakyReluScalesNegativeValues) {
    EXPECT_THAT(apply("leaky_relu", {-100, 0, 3}), ElementsAre(FloatEq(-1), 0, 3));
    EXPECT_THAT(apply("leaky_relu", {-4, 4}, {{"alpha", -0.5}}), ElementsAre(2, 4));
    EXPECT_THAT(apply("leaky_relu", {-kInf, kInf}, {{"alpha", std::int64_t{2}}}), ElementsAre(-kInf, kInf));
}

TEST(Activation, EluIsAccurateNearZero) {
    EXPECT_THAT(apply("elu", {-1e-6, 0, 2, -kInf}), ElementsAre(FloatEq(-9.999995e-7f), 0, 2, -1));
    EXPECT_THAT(apply("elu", {-1}, {{"alpha", 3.0}}), ElementsAre(FloatEq(3 * (std::exp(-1.0f) - 1))));
}

TEST(Activation, HardSigmoidStaysWithinZeroAndOne) {
    EXPECT_THAT(apply("hard_sigmoid", {-10, 0, 1, 10, -kInf, kInf}),
                ElementsAre(0, 0.5f, FloatEq(0.7f), 1, 0, 1));
    EXPECT_THAT(apply("hard_sigmoid", {-1, 1}, {{"alpha", -0.5}, {"beta", 0.25}}), ElementsAre(0.75f, 0));
}

TEST(Activation, HardSwishGatesItsInput) {
    EXPECT_THAT(apply("hard_swish", {-4, -3, -1, 0, 1, 3, 5}),
                ElementsAre(0, 0, FloatEq(-1.0f / 3), 0, FloatEq(2.0f / 3), 3, 5));
}

TEST(Activation, LinearScalesAndShifts) {
    EXPECT_THAT(apply("linear", {-1, 2}), ElementsAre(-1, 2));
    EXPECT_THAT(apply("linear", {-1, 2}, {{"alpha", 3.0}, {"beta", -0.5}}), ElementsAre(-3.5f, 5.5f));
    EXPECT_THAT(apply("linear", {2048}, {{"beta", 1.0}}, DType::f16), ElementsAre(2048));
}

TEST(Activation, LinearWithDefaultsIsItsInput) {
    const OpDef& def = *find_op("linear");
    const TensorType x{DType::f32, {2}};
    const TensorType* types[] = {&x};
    EXPECT_EQ(def.same_as(Operands(types), nullptr), 0);
    EXPECT_EQ(def.same_as(Operands(types), def.make_attrs({{"beta", 1.0}}).value().get()), std::nullopt);
}

TEST(Activation, SoftplusNeitherOverflowsNorVanishes) {
    EXPECT_THAT(apply("softplus", {0, 1000, -30, -kInf, kInf}),
                ElementsAre(FloatEq(std::log(2.0f)), 1000, FloatEq(std::exp(-30.0f)), 0, kInf));
}

TEST(Activation, SoftsignDividesByOnePlusMagnitude) {
    EXPECT_THAT(apply("softsign", {-3, 0, 1}), ElementsAre(-0.75f, 0, 0.5f));
}

TEST(Activation, KeepsNan) {
    for (const char* op :
         {"leaky_relu", "elu", "hard_sigmoid", "hard_swish", "linear", "softplus", "softsign"})
        EXPECT_TRUE(std::isnan(apply(op, {kNan})[0])) << op;
}

TEST(Activation, ComputesEveryFloatType) {
    for (DType t : {DType::f16, DType::bf16, DType::f64})
        EXPECT_THAT(apply("leaky_relu", {-4, 4}, {{"alpha", 0.25}}, t), ElementsAre(-1, 4)) << name_of(t);
    EXPECT_DOUBLE_EQ(values<double>("elu", {tensor(DType::f64, {}, {-1})})[0], std::expm1(-1.0));
}

TEST(Activation, RejectsIntegersAndUnknownAttributes) {
    for (const char* op :
         {"leaky_relu", "elu", "hard_sigmoid", "hard_swish", "linear", "softplus", "softsign"})
        EXPECT_THAT(infer_error(op, {TensorType{DType::i32, {2}}}), HasSubstr("i32")) << op;
    EXPECT_THAT(infer_error("elu", {TensorType{DType::f32, {2}}}, {{"beta", 1.0}}), HasSubstr("'beta'"));
}

TEST(Prelu, BroadcastsBoth) {
    EXPECT_THAT(
        values("prelu", {tensor(DType::f32, {2, 2}, {-1, 2, -3, -4}), tensor(DType::f32, {2}, {0.5, 10})}),
        ElementsAre(-0.5f, 2, -1.5f, -40));
    EXPECT_THAT(values("prelu", {tensor(DType::f32, {2, 1}, {-1, -2}), tensor(DType::f32, {2, 1}, {3, 4})}),
                ElementsAre(-3, -8));
    EXPECT_THAT(values("prelu", {tensor(DType::f32, {2, 1}, {-1, 2}), tensor(DType::f32, {2}, {3, 4})}),
                ElementsAre(-3, -4, 2, 2));
    EXPECT_THAT(values("prelu", {tensor(DType::f32, {}, {-1}), tensor(DType::f32, {3}, {3, 4, 5})}),
                ElementsAre(-3, -4, -5));
}

TEST(Prelu, WrapsIntegers) {
    EXPECT_THAT(values<int>("prelu", {tensor(DType::i8, {3}, {-100, 5, -2}), tensor(DType::i8, {}, {2})}),
                ElementsAre(56, 5, -4));
}

TEST(Prelu, RejectsShapesThatDoNotBroadcastAndOtherTypes) {
    EXPECT_THAT(infer_error("prelu", {TensorType{DType::f32, {3}}, TensorType{DType::f32, {2}}}),
                HasSubstr("Incompatible shapes"));
    EXPECT_THAT(infer_error("prelu", {TensorType{DType::f32, {3}}, TensorType{DType::f16, {3}}}),
                HasSubstr("f16"));
}

}  // namespace
}  // namespace headrace::testing
