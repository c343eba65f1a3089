#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <numeric>

#include "doors/webnn/operator_cases.h"

namespace headrace::webnn::testing {
namespace {

using Values = std::vector<double>;
using UnaryMethod = MLOperand (MLGraphBuilder::*)(const MLOperand&, const MLOptions&, const std::string&);
using BinaryMethod = MLOperand (MLGraphBuilder::*)(const MLOperand&, const MLOperand&, const MLOptions&,
                                                   const std::string&);
using B = MLGraphBuilder;

constexpr double kInfinity = std::numeric_limits<double>::infinity(),
                 kNaN = std::numeric_limits<double>::quiet_NaN();
const Values kSigned{-2, -0.5, 0.25, 1, 2.5, 4}, kPositive{0.25, 0.5, 1, 1.5, 2, 7},
    kSpecial{-kInfinity, -1, 0, 3, kInfinity, kNaN}, kTruths{0, 1, 0, 2, 255, 0};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct Unary {
    std::string name;
    UnaryMethod method;
    double (*f)(double);
    Values x = kSigned;
    DType in = DType::f32, out = DType::f32;
    MLOptions options = {};
};

std::vector<Unary> unary_rows() {
    return {
        {"abs", &B::abs, [](double x) { return std::abs(x); }},
        {"ceil", &B::ceil, [](double x) { return std::ceil(x); }},
        {"cos", &B::cos, [](double x) { return std::cos(x); }},
        {"erf", &B::erf, [](double x) { return std::erf(x); }},
        {"exp", &B::exp, [](double x) { return std::exp(x); }},
        {"floor", &B::floor, [](double x) { return std::floor(x); }},
        {"gelu", &B::gelu, [](double x) { return x / 2 * (1 + std::erf(x / std::numbers::sqrt2)); }},
        {"hardSwish", &B::hardSwish, [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }},
        {"identity", &B::identity, [](double x) { return x; }},
        {"isInfinite", &B::isInfinite, [](double x) { return double(std::isinf(x)); }, kSpecial, DType::f32,
         DType::u8},
        {"isNaN", &B::isNaN, [](double x) { return double(std::isnan(x)); }, kSpecial, DType::f32, DType::u8},
        {"log", &B::log, [](double x) { return std::log(x); }, kPositive},
        {"logicalNot", &B::logicalNot, [](double x) { return double(x == 0); }, kTruths, DType::u8,
         DType::u8},
        {"neg", &B::neg, [](double x) { return -x; }},
        {"reciprocal", &B::reciprocal, [](double x) { return 1 / x; }},
        {"relu", &B::relu, [](double x) { return std::max(x, 0.0); }},
        {"roundEven", &B::roundEven, [](double x) { return std::nearbyint(x); }},
        {"sigmoid", &B::sigmoid, sigmoid},
        {"sign", &B::sign, [](double x) { return x < 0 ? -1.0 : x > 0; }},
        {"sin", &B::sin, [](double x) { return std::sin(x); }},
        {"softplus", &B::softplus, [](double x) { return std::log1p(std::exp(x)); }},
        {"softsign", &B::softsign, [](double x) { return x / (1 + std::abs(x)); }},
        {"sqrt", &B::sqrt, [](double x) { return std::sqrt(x); }, kPositive},
        {"tan", &B::tan, [](double x) { return std::tan(x); }, kPositive},
        {"tanh", &B::tanh, [](double x) { return std::tanh(x); }},
        {"clamp",
         &B::clamp,
         [](double x) { return std::clamp(x, -1.0, 2.0); },
         kSigned,
         DType::f32,
         DType::f32,
         {{"minValue", -1.0}, {"maxValue", 2.0}}},
        {"elu",
         &B::elu,
         [](double x) { return x < 0 ? 0.5 * std::expm1(x) : x; },
         kSigned,
         DType::f32,
         DType::f32,
         {{"alpha", 0.5}}},
        {"hardSigmoid",
         &B::hardSigmoid,
         [](double x) { return std::clamp(0.25 * x + 0.5, 0.0, 1.0); },
         kSigned,
         DType::f32,
         DType::f32,
         {{"alpha", 0.25}, {"beta", 0.5}}},
        {"leakyRelu",
         &B::leakyRelu,
         [](double x) { return x < 0 ? 0.1 * x : x; },
         kSigned,
         DType::f32,
         DType::f32,
         {{"alpha", 0.1}}},
        {"linear",
         &B::linear,
         [](double x) { return 2 * x + 1; },
         kSigned,
         DType::f32,
         DType::f32,
         {{"alpha", 2.0}, {"beta", 1.0}}},
    };
}

struct Binary {
    std::string name;
    BinaryMethod method;
    double (*f)(double, double);
    DType in = DType::f32, out = DType::f32;
    Values a = kSigned, b = {1, -0.5, 4, 1, -2, 0.5};
};

std::vector<Binary> binary_rows() {
    constexpr DType kF32 = DType::f32, kU8 = DType::u8;
    const Values other{0, 1, 3, 0, 1, 0};
    return {
        {"add", &B::add, [](double a, double b) { return a + b; }},
        {"sub", &B::sub, [](double a, double b) { return a - b; }},
        {"mul", &B::mul, [](double a, double b) { return a * b; }},
        {"div", &B::div, [](double a, double b) { return a / b; }},
        {"max", &B::max, [](double a, double b) { return std::max(a, b); }},
        {"min", &B::min, [](double a, double b) { return std::min(a, b); }},
        {"pow", &B::pow, [](double a, double b) { return std::pow(a, b); }, kF32, kF32, kPositive},
        {"equal", &B::equal, [](double a, double b) { return double(a == b); }, kF32, kU8},
        {"notEqual", &B::notEqual, [](double a, double b) { return double(a != b); }, kF32, kU8},
        {"greater", &B::greater, [](double a, double b) { return double(a > b); }, kF32, kU8},
        {"greaterOrEqual", &B::greaterOrEqual, [](double a, double b) { return double(a >= b); }, kF32, kU8},
        {"lesser", &B::lesser, [](double a, double b) { return double(a < b); }, kF32, kU8},
        {"lesserOrEqual", &B::lesserOrEqual, [](double a, double b) { return double(a <= b); }, kF32, kU8},
        {"logicalAnd", &B::logicalAnd, [](double a, double b) { return double(a && b); }, kU8, kU8, kTruths,
         other},
        {"logicalOr", &B::logicalOr, [](double a, double b) { return double(a || b); }, kU8, kU8, kTruths,
         other},
        {"logicalXor", &B::logicalXor, [](double a, double b) { return double(!a != !b); }, kU8, kU8, kTruths,
         other},
        {"prelu", &B::prelu, [](double x, double slope) { return x < 0 ? slope * x : x; }},
    };
}

/// A reduction of rows of three elements.
struct Reduction {
    std::string name;
    UnaryMethod method;
    double (*f)(const Values& row);
};

double sum_of(const Values& row, double (*f)(double)) {
    return std::transform_reduce(row.begin(), row.end(), 0.0, std::plus<>(), f);
}

double same(double x) { return x; }
double magnitude(double x) { return std::abs(x); }
double square(double x) { return x * x; }
double exponential(double x) { return std::exp(x); }

std::vector<Reduction> reduction_rows() {
    return {
        {"reduceL1", &B::reduceL1, [](const Values& row) { return sum_of(row, magnitude); }},
        {"reduceL2", &B::reduceL2, [](const Values& row) { return std::sqrt(sum_of(row, square)); }},
        {"reduceLogSum", &B::reduceLogSum, [](const Values& row) { return std::log(sum_of(row, same)); }},
        {"reduceLogSumExp", &B::reduceLogSumExp,
         [](const Values& row) { return std::log(sum_of(row, exponential)); }},
        {"reduceMax", &B::reduceMax, [](const Values& row) { return *std::ranges::max_element(row); }},
        {"reduceMean", &B::reduceMean, [](const Values& row) { return sum_of(row, same) / 3; }},
        {"reduceMin", &B::reduceMin, [](const Values& row) { return *std::ranges::min_element(row); }},
        {"reduceProduct", &B::reduceProduct, [](const Values& row) { return row[0] * row[1] * row[2]; }},
        {"reduceSum", &B::reduceSum, [](const Values& row) { return sum_of(row, same); }},
        {"reduceSumSquare", &B::reduceSumSquare, [](const Values& row) { return sum_of(row, square); }},
    };
}

OperatorCase unary_case(const Unary& row) {
    Values y;
    for (double x : row.x) y.push_back(row.f(x));
    return {row.name,
            [row](Call& c) {
                return (c.builder.*row.method)(c.input({2, 3}, row.x, row.in), row.options, "");
            },
            {{row.out, {2, 3}, y}}};
}

OperatorCase binary_case(const Binary& row) {
    Values y;
    for (std::size_t i = 0; i < row.a.size(); ++i) y.push_back(row.f(row.a[i], row.b[i]));
    return {row.name,
            [row](Call& c) {
                const MLOperand a = c.input({2, 3}, row.a, row.in), b = c.input({2, 3}, row.b, row.in);
                return (c.builder.*row.method)(a, b, {}, "");
            },
            {{row.out, {2, 3}, y}}};
}

OperatorCase reduction_case(const Reduction& row) {
    const Values first{1, -2, 3}, second{0.5, 4, -1};
    return {row.name,
            [method = row.method](Call& c) {
                const MLOperand x = c.input({2, 3}, {1, -2, 3, 0.5, 4, -1});
                return (c.builder.*method)(x, {{"axes", Ints{1}}, {"keepDimensions", true}}, "");
            },
            {{DType::f32, {2, 1}, {row.f(first), row.f(second)}}}};
}

}  // namespace

std::vector<OperatorCase> element_cases() {
    std::vector<OperatorCase> cases;
    for (const Unary& row : unary_rows()) cases.push_back(unary_case(row));
    for (const Binary& row : binary_rows()) cases.push_back(binary_case(row));
    for (const Reduction& row : reduction_rows()) cases.push_back(reduction_case(row));
    return cases;
}

}  // namespace headrace::webnn::testing
