#include <gmock/gmock.h>

#include <cmath>
#include <string>
#include <utility>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

/// Values from tables of the functions, not from the C library that the kernels call.
TEST(Unary, InverseAndHyperbolicFunctionsHaveTheirTabulatedValues) {
    const std::pair<std::string, std::pair<double, double>> expected[] = {
        {"asin", {0.5, 0.5235987756}}, {"acos", {0.5, 1.0471975512}},  {"atan", {1, 0.7853981634}},
        {"sinh", {1, 1.1752011936}},   {"cosh", {1, 1.5430806348}},    {"asinh", {1, 0.8813735870}},
        {"acosh", {2, 1.3169578969}},  {"atanh", {0.5, 0.5493061443}}, {"log2", {8, 3}},
        {"log10", {0.001, -3}},        {"expm1", {1, 1.7182818285}},   {"log1p", {1, 0.6931471806}},
    };
    for (const auto& [op, point] : expected)
        EXPECT_NEAR(values<double>(op, {tensor(DType::f64, {}, {point.first})})[0], point.second, 1e-9) << op;
}

TEST(Unary, Expm1AndLog1pKeepTheirPrecisionNearZero) {
    for (const char* op : {"expm1", "log1p"})
        EXPECT_THAT(values(op, {tensor(DType::f32, {2}, {1e-8, -1e-8})}),
                    Pointwise(FloatNear(1e-13f), {1e-8f, -1e-8f}))
            << op;
}

TEST(Unary, IsNanOutsideOfAFunctionsDomain) {
    for (const char* op : {"asin", "acos", "atanh", "log2", "log10", "log1p"})
        EXPECT_TRUE(std::isnan(values(op, {tensor(DType::f32, {}, {-2})})[0]) ||
                    std::isnan(values(op, {tensor(DType::f32, {}, {2})})[0]))
            << op;
}

}  // namespace
}  // namespace headrace::testing
