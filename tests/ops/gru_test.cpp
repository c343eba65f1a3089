#include <gmock/gmock.h>

#include <cmath>

#include "ops/recurrent_operands.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// One value of state and input: weights, recurrent weights and both biases in the order z, r, n.
struct GruScalar {
    Values w{0.5, -0.25, 2}, r{1, 0.75, -0.5}, b{0.1, 0.2, 0.3}, rb{-0.3, 0.4, 0.25};
    double x = 0.8, h = -0.6;

    OptionalTensors operands() const {
        return {tensor(DType::f64, {1, 1}, {x}), tensor(DType::f64, {3, 1}, w), tensor(DType::f64, {3, 1}, r),
                tensor(DType::f64, {1, 1}, {h}), tensor(DType::f64, {3}, b),    tensor(DType::f64, {3}, rb)};
    }
    double gate(int i) const { return sigmoid(w[i] * x + b[i] + r[i] * h + rb[i]); }
};

TEST(GruCell, FollowsItsFormula) {
    const GruScalar s;
    const double z = s.gate(0), r = s.gate(1);
    const double after = std::tanh(s.w[2] * s.x + s.b[2] + r * (s.r[2] * s.h + s.rb[2]));
    const double before = std::tanh(s.w[2] * s.x + s.b[2] + s.r[2] * (r * s.h) + s.rb[2]);
    EXPECT_NEAR(values<double>("gru_cell", s.operands(), hidden(1))[0], z * s.h + (1 - z) * after, 1e-15);
    EXPECT_NEAR(values<double>("gru_cell", s.operands(), hidden(1, {{"reset_after", false}}))[0],
                z * s.h + (1 - z) * before, 1e-15);
    EXPECT_GT(std::abs(after - before), 1e-3);
}

TEST(GruCell, MultipliesBatchesByMatrices) {
    // With z = relu(0) = 0 the result is n = relu(W x + R h), because r = relu(1) = 1 by its bias.
    const auto w = tensor(DType::f32, {6, 2}, {0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4});
    const auto r = tensor(DType::f32, {6, 2}, {0, 0, 0, 0, 0, 0, 0, 0, 10, 20, 30, 40});
    const auto bias = tensor(DType::f32, {6}, {0, 0, 1, 1, 0, 0});
    const auto x = tensor(DType::f32, {2, 2}, {1, 2, 3, 4}), h = tensor(DType::f32, {2, 2}, {1, 0, 0, 1});
    for (const bool reset_after : {false, true})
        EXPECT_THAT(
            values("gru_cell", {x, w, r, h, bias},
                   hidden(2, {{"reset_after", reset_after}, {"activations", std::string("relu,relu")}})),
            ElementsAre(5 + 10, 11 + 30, 11 + 20, 25 + 40));
}

TEST(GruCell, TakesTheResetGateFirst) {
    GruScalar s;
    const auto expected = values<double>("gru_cell", s.operands(), hidden(1));
    for (Values* v : {&s.w, &s.r, &s.b, &s.rb}) std::swap((*v)[0], (*v)[1]);
    EXPECT_EQ(values<double>("gru_cell", s.operands(), hidden(1, {{"layout", std::string("rzn")}})),
              expected);
}

TEST(GruCell, TakesOtherActivations) {
    GruScalar s;
    s.w = {1, 1, 1};
    s.r = {0, 0, 0};
    s.b = {0, 0, 0};
    s.rb = {0, 0, 0};
    s.x = 0.5;
    s.h = 2;
    EXPECT_THAT(
        values<double>("gru_cell", s.operands(), hidden(1, {{"activations", std::string("relu,relu")}})),
        ElementsAre(0.5 * 2 + 0.5 * 0.5));
    s.x = -0.5;
    EXPECT_THAT(
        values<double>("gru_cell", s.operands(), hidden(1, {{"activations", std::string("relu,sigmoid")}})),
        ElementsAre(::testing::DoubleNear(sigmoid(-0.5), 1e-15)));
}

struct GruNetwork {
    std::int64_t steps = 3, batch = 2, inputs = 2, size = 3, directions = 1;
    TestTensor x = f64({steps, batch, inputs}, 1);

    OptionalTensors operands(bool initial = true) const {
        OptionalTensors in{x, f64({directions, 3 * size, inputs}, 2), f64({directions, 3 * size, size}, 3),
                           f64({directions, 3 * size}, 4), f64({directions, 3 * size}, 5)};
        if (initial) in.push_back(f64({directions, batch, size}, 6));
        return in;
    }
    /// The states after each step, through gru_cell; [step][batch · size].
    std::vector<Values> by_cells(std::int64_t d, bool backward) const {
        const auto in = operands();
        const auto part = [&](std::size_t i, Shape shape) {
            const auto all = in[i]->as<double>();
            const auto count = static_cast<std::int64_t>(all.size()) / directions;
            return tensor(DType::f64, std::move(shape),
                          Values(all.begin() + d * count, all.begin() + (d + 1) * count));
        };
        std::vector<Values> states;
        TestTensor h = part(5, {batch, size});
        const auto input = x.as<double>();
        for (std::int64_t i = 0; i < steps; ++i) {
            const auto at = input.begin() + (backward ? steps - 1 - i : i) * batch * inputs;
            const auto step = tensor(DType::f64, {batch, inputs}, Values(at, at + batch * inputs));
            states.push_back(values<double>("gru_cell",
                                            {step, part(1, {3 * size, inputs}), part(2, {3 * size, size}), h,
                                             part(3, {3 * size}), part(4, {3 * size})},
                                            hidden(size)));
            h = tensor(DType::f64, {batch, size}, states.back());
        }
        return states;
    }
};

void expect_near(const Values& actual, const Values& expected) {
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-14) << i;
}

TEST(Gru, RepeatsTheCell) {
    const GruNetwork n;
    const auto out = run("gru", n.operands(), hidden(n.size, {{"return_sequence", true}}));
    ASSERT_EQ(out.size(), 2u);
    EXPECT_EQ(out[0].type.shape, (Shape{1, 2, 3}));
    EXPECT_EQ(out[1].type.shape, (Shape{3, 1, 2, 3}));
    Values all;
    const auto states = n.by_cells(0, false);
    for (const Values& s : states) all.insert(all.end(), s.begin(), s.end());
    expect_near(out[1].as<double>(), all);
    expect_near(out[0].as<double>(), states.back());
}

TEST(Gru, BackwardStoresStatesByInputPosition) {
    const GruNetwork n;
    const auto out = run("gru", n.operands(),
                         hidden(n.size, {{"return_sequence", true}, {"direction", std::string("backward")}}));
    const auto states = n.by_cells(0, true);
    Values all;
    for (auto s = states.rbegin(); s != states.rend(); ++s) all.insert(all.end(), s->begin(), s->end());
    expect_near(out[1].as<double>(), all);
    expect_near(out[0].as<double>(), states.back());
}

TEST(Gru, RunsBothDirectionsWithTheirOwnWeights) {
    GruNetwork n;
    n.directions = 2;
    const auto out = run("gru", n.operands(),
                         hidden(n.size, {{"return_sequence", true}, {"direction", std::string("both")}}));
    EXPECT_EQ(out[1].type.shape, (Shape{3, 2, 2, 3}));
    const auto forward = n.by_cells(0, false), backward = n.by_cells(1, true);
    Values last = forward.back(), all;
    last.insert(last.end(), backward.back().begin(), backward.back().end());
    expect_near(out[0].as<double>(), last);
    for (std::size_t i = 0; i < 3; ++i) {
        all.insert(all.end(), forward[i].begin(), forward[i].end());
        all.insert(all.end(), backward[2 - i].begin(), backward[2 - i].end());
    }
    expect_near(out[1].as<double>(), all);
}

TEST(Gru, StartsAtZeroWithoutAnInitialState) {
    const GruNetwork n;
    auto with_zero = n.operands(false);
    with_zero.push_back(tensor(DType::f64, {1, 2, 3}, Values(6, 0)));
    EXPECT_EQ(values<double>("gru", n.operands(false), hidden(n.size)),
              values<double>("gru", with_zero, hidden(n.size)));
}

TEST(Gru, RoundsOnceInEveryFloatType) {
    // Wide enough for the unrolled dot product: 11 inputs of 1 and weights 1/16 are exact in every type.
    for (DType t : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
        const auto constant = [&](Shape shape, double value) {
            const auto count = static_cast<std::size_t>(TensorType{t, shape}.elements());
            return tensor(t, std::move(shape), Values(count, value));
        };
        EXPECT_THAT(
            values("gru", {constant({1, 1, 11}, 1), constant({1, 3, 11}, 0.0625), constant({1, 3, 1}, 0)},
                   hidden(1, {{"activations", std::string("relu,relu")}})),
            ElementsAre((1 - 0.6875) * 0.6875))
            << name_of(t);
    }
}

TEST(Gru, KeepsSymbolicStepsAndBatches) {
    const Dim steps = Dim::symbolic("steps"), batch = Dim::symbolic("batch");
    const std::vector<std::optional<TensorType>> types{f32({steps, batch, 2}), f32({1, 9, 2}),
                                                       f32({1, 9, 3})};
    const auto out = infer("gru", types, hidden(3, {{"return_sequence", true}})).value();
    EXPECT_EQ(out[0], f32({1, batch, 3}));
    EXPECT_EQ(out[1], f32({steps, 1, batch, 3}));
    EXPECT_THAT(conditions("gru", types, hidden(3, {{"steps", std::int64_t{4}}})), ElementsAre("steps = 4"));
}

TEST(Gru, RejectsWhatDoesNotFit) {
    using Operands = std::vector<std::optional<TensorType>>;
    const Operands fitting{f32({4, 2, 5}), f32({1, 9, 5}), f32({1, 9, 3}),
                           f32({1, 9}),    f32({1, 9}),    f32({1, 2, 3})};
    EXPECT_EQ(infer_error("gru", fitting, hidden(3, {{"steps", std::int64_t{4}}})), "");
    const auto error = [&](std::size_t i, Shape shape) {
        Operands types = fitting;
        types[i] = f32(std::move(shape));
        return infer_error("gru", types, hidden(3));
    };
    EXPECT_EQ(error(1, {1, 9, 4}), "weight has shape [1, 9, 4] but must have shape [1, 9, 5]");
    EXPECT_EQ(error(2, {2, 9, 3}), "recurrent_weight has shape [2, 9, 3] but must have shape [1, 9, 3]");
    EXPECT_EQ(error(3, {1, 3}), "bias has shape [1, 3] but must have shape [1, 9]");
    EXPECT_EQ(error(4, {9, 1}), "recurrent_bias has shape [9, 1] but must have shape [1, 9]");
    EXPECT_EQ(error(5, {1, 4, 3}), "initial_hidden_state has shape [1, 4, 3] but must have shape [1, 2, 3]");
    EXPECT_THAT(error(0, {4, 2}), HasSubstr("must be 3D"));
    EXPECT_EQ(infer_error("gru", fitting, hidden(3, {{"steps", std::int64_t{3}}})),
              "steps is 3 but the input has 4 steps");
    EXPECT_THAT(infer_error("gru", fitting, hidden(0)), HasSubstr("hidden_size must be from 1"));
    EXPECT_THAT(infer_error("gru", fitting, hidden(INT64_MAX)), HasSubstr("hidden_size must be from 1"));
    EXPECT_THAT(infer_error("gru", fitting, hidden(3, {{"direction", std::string("both")}})),
                HasSubstr("must have shape [2, 9, 5]"));
    EXPECT_EQ(infer_error("gru", fitting, hidden(3, {{"activations", std::string("relu")}})),
              "activations must be 2 names, got 'relu'");
    EXPECT_EQ(infer_error("gru", fitting, hidden(3, {{"activations", std::string("relu,elu")}})),
              "activation 'elu' is none of relu, sigmoid and tanh");
    EXPECT_EQ(infer_error("gru_cell", {f32({2, 5}), f32({9, 5}), f32({9, 3}), f32({3, 3})}, hidden(3)),
              "hidden_state has shape [3, 3] but must have shape [2, 3]");
    EXPECT_THAT(infer_error("gru", fitting), HasSubstr("hidden_size is missing"));
}

}  // namespace
}  // namespace headrace::testing
