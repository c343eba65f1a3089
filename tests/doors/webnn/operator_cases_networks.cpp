#include <array>
#include <cmath>

#include "doors/webnn/operator_cases.h"

namespace headrace::webnn::testing {
namespace {

std::vector<OperatorCase> product_cases() {
    return {
        {"matmul",
         [](Call& c) {
             return c.builder.matmul(c.input({1, 2}, {1, 2}), c.input({2, 2}, {3, 4, 5, 6}));
         },
         {{kF32, {1, 2}, {13, 16}}}},
        {"gemm",
         [](Call& c) {
             return c.builder.gemm(c.input({1, 2}, {1, 2}), c.input({1, 2}, {3, 4}), c.input({1}, {4}),
                                   {{"alpha", 2.0}, {"beta", 0.5}, {"bTranspose", true}});
         },
         {{kF32, {1, 1}, {24}}}},
        {"conv2d",
         [](Call& c) {
             return c.builder.conv2d(c.input({1, 1, 2, 3}, {1, 2, 3, 4, 5, 6}),
                                     c.input({1, 1, 2, 2}, {1, 0, 0, 1}), c.input({1}, {0.5}),
                                     {{"padding", Ints{0, 0, 1, 0}}});
         },
         {{kF32, {1, 1, 1, 3}, {4.5, 6.5, 8.5}}}},
        {"convTranspose2d",
         [](Call& c) {
             return c.builder.convTranspose2d(c.input({1, 1, 1, 2}, {2, 3}),
                                              c.input({1, 1, 2, 2}, {1, 2, 3, 4}), c.input({1}, {1}),
                                              {{"strides", Ints{2, 2}}});
         },
         {{kF32, {1, 1, 2, 4}, {3, 5, 4, 7, 7, 9, 10, 13}}}},
    };
}

std::vector<OperatorCase> pooling_cases() {
    constexpr auto image = [](Call& c) { return c.input({1, 1, 2, 4}, {1, 2, 5, 6, 3, 4, 7, 9}); };
    const MLOptions quarters{{"windowDimensions", Ints{2, 2}}, {"strides", Ints{2, 2}}};
    return {
        {"averagePool2d",
         [=](Call& c) { return c.builder.averagePool2d(image(c), quarters); },
         {{kF32, {1, 1, 1, 2}, {2.5, 6.75}}}},
        {"l2Pool2d",
         [=](Call& c) { return c.builder.l2Pool2d(image(c), quarters); },
         {{kF32, {1, 1, 1, 2}, {std::sqrt(30.0), std::sqrt(191.0)}}}},
        {"maxPool2d",
         [=](Call& c) { return c.builder.maxPool2d(image(c), quarters); },
         {{kF32, {1, 1, 1, 2}, {4, 9}}}},
    };
}

std::vector<OperatorCase> normalization_cases() {
    return {
        {"batchNormalization",
         [](Call& c) {
             return c.builder.batchNormalization(c.input({1, 2, 2}, {1, 3, 2, 5}), c.input({2}, {1, 2}),
                                                 c.input({2}, {3, 8}), c.input({2}, {1, 3}),
                                                 c.input({2}, {0, 1}), {{"epsilon", 1.0}});
         },
         {{kF32, {1, 2, 2}, {0, 1, 1, 4}}}},
        {"instanceNormalization",
         [](Call& c) {
             return c.builder.instanceNormalization(c.input({1, 2, 1, 2}, {1, 3, 0, 4}), c.input({2}, {2, 3}),
                                                    c.input({2}, {0, 1}), {{"epsilon", 5.0}});
         },
         {{kF32, {1, 2, 1, 2}, {-2 / std::sqrt(6.0), 2 / std::sqrt(6.0), -1, 3}}}},
        {"layerNormalization",
         [](Call& c) {
             return c.builder.layerNormalization(c.input({2, 2}, {1, 3, 0, 4}), c.input({2}, {2, 3}),
                                                 c.input({2}, {0, 1}), {{"axes", Ints{1}}, {"epsilon", 5.0}});
         },
         {{kF32, {2, 2}, {-2 / std::sqrt(6.0), 1 + 3 / std::sqrt(6.0), -4 / 3.0, 3}}}},
        {"softmax",
         [](Call& c) {
             return c.builder.softmax(c.input({1, 2}, {0, std::log(3.0)}), 1);
         },
         {{kF32, {1, 2}, {0.25, 0.75}}}},
    };
}

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

/// Networks of one unit on one number, so that a step is the specification's formulas as they stand there.
constexpr std::array<double, 4> kWeight{0.5, -1, 2, 0.75}, kRecurrent{-0.5, 1.5, 0.25, 1};
constexpr double kFirst = 0.8, kSecond = -0.6, kHidden = 0.3, kCell = -0.7;

/// Gates in the order update, reset, new.
double gru_step(double x, double h) {
    const auto gate = [&](std::size_t i, double scale) { return kWeight[i] * x + scale * kRecurrent[i] * h; };
    const double update = logistic(gate(0, 1)), reset = logistic(gate(1, 1));
    return (1 - update) * std::tanh(gate(2, reset)) + update * h;
}

struct LstmState {
    double hidden, cell;
};

/// Gates in the order input, output, forget, cell.
LstmState lstm_step(double x, LstmState state) {
    const auto gate = [&](std::size_t i) { return kWeight[i] * x + kRecurrent[i] * state.hidden; };
    const double cell = logistic(gate(2)) * state.cell + logistic(gate(0)) * std::tanh(gate(3));
    return {logistic(gate(1)) * std::tanh(cell), cell};
}

/// The first so many of four gates, with the extents before them that a method wants.
MLOperand gates(Call& c, const std::array<double, 4>& all, Ints before, std::int64_t count) {
    before.insert(before.end(), {count, 1});
    return c.input(before, {all.begin(), all.begin() + count});
}

std::vector<OperatorCase> gru_cases() {
    const double once = gru_step(kFirst, 0), twice = gru_step(kSecond, once);
    return {
        {"gru",
         [](Call& c) {
             const MLOperand x = c.input({2, 1, 1}, {kFirst, kSecond});
             return c.builder.gru(x, gates(c, kWeight, {1}, 3), gates(c, kRecurrent, {1}, 3), 2, 1, {},
                                  {{"returnSequence", true}});
         },
         {{kF32, {1, 1, 1}, {twice}}, {kF32, {2, 1, 1, 1}, {once, twice}}}},
        {"gruCell",
         [](Call& c) {
             const MLOperand x = c.input({1, 1}, {kFirst}), h = c.input({1, 1}, {kHidden});
             return c.builder.gruCell(x, gates(c, kWeight, {}, 3), gates(c, kRecurrent, {}, 3), h, 1);
         },
         {{kF32, {1, 1}, {gru_step(kFirst, kHidden)}}}},
    };
}

std::vector<OperatorCase> lstm_cases() {
    const LstmState once = lstm_step(kFirst, {0, 0}), twice = lstm_step(kSecond, once),
                    step = lstm_step(kFirst, {kHidden, kCell});
    return {
        {"lstm",
         [](Call& c) {
             const MLOperand x = c.input({2, 1, 1}, {kFirst, kSecond});
             return c.builder.lstm(x, gates(c, kWeight, {1}, 4), gates(c, kRecurrent, {1}, 4), 2, 1, {},
                                   {{"returnSequence", true}});
         },
         {{kF32, {1, 1, 1}, {twice.hidden}},
          {kF32, {1, 1, 1}, {twice.cell}},
          {kF32, {2, 1, 1, 1}, {once.hidden, twice.hidden}}}},
        {"lstmCell",
         [](Call& c) {
             const MLOperand x = c.input({1, 1}, {kFirst}), h = c.input({1, 1}, {kHidden}),
                             cell = c.input({1, 1}, {kCell});
             return c.builder.lstmCell(x, gates(c, kWeight, {}, 4), gates(c, kRecurrent, {}, 4), h, cell, 1);
         },
         {{kF32, {1, 1}, {step.hidden}}, {kF32, {1, 1}, {step.cell}}}},
    };
}

}  // namespace

std::vector<OperatorCase> network_cases() {
    std::vector<OperatorCase> all;
    for (auto* cases : {product_cases, pooling_cases, normalization_cases, gru_cases, lstm_cases})
        for (OperatorCase& one : cases()) all.push_back(std::move(one));
    return all;
}

}  // namespace headrace::webnn::testing
