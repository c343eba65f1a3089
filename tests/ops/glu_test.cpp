#include <gmock/gmock.h>

#include <cmath>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

TEST(Glu, MultipliesByTheActivatedGate) {
    const auto gate = tensor(DType::f64, {4}, {0, 1, -2, 30}), x = tensor(DType::f64, {4}, {5, -2, 3, 0.5});
    const auto run = [&](const char* name) {
        return values<double>("glu", {gate, x}, {{"activation", std::string(name)}});
    };
    const double s1 = 1 / (1 + std::exp(-1)), s2 = 1 / (1 + std::exp(2)), phi = 0.8413447460685429;
    EXPECT_THAT(run("sigmoid"), Pointwise(DoubleNear(1e-10), {2.5, -2 * s1, 3 * s2, 0.5}));
    EXPECT_THAT(run("silu"), Pointwise(DoubleNear(1e-10), {0.0, -2 * s1, -6 * s2, 15.0}));
    EXPECT_THAT(run("relu"), Pointwise(DoubleNear(1e-12), {0.0, -2.0, 0.0, 15.0}));
    EXPECT_THAT(run("gelu"), Pointwise(DoubleNear(1e-9), {0.0, -2 * phi, -0.136500791686, 15.0}));
    EXPECT_EQ(values<double>("glu", {gate, x}), run("silu"));
}

TEST(Glu, RefusesShapesThatDifferAndUnknownActivations) {
    const auto two = tensor(DType::f32, {2}, {1, 2}), one = tensor(DType::f32, {1}, {1});
    EXPECT_THAT(error("glu", {two, one}), HasSubstr("gate has shape [2] but x has [1]"));
    EXPECT_THAT(error("glu", {two, two}, {{"activation", std::string("softsign")}}), HasSubstr("softsign"));
}

}  // namespace
}  // namespace headrace::testing
