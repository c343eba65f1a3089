#include <gmock/gmock.h>

#include <cmath>

#include "ops/recurrent_operands.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// One value of state and input: weights and biases in the order i, o, f, g; peepholes i, o, f.
struct LstmScalar {
    Values w{0.5, -0.25, 2, 1.5}, r{1, 0.75, -0.5, 0.25}, b{0.1, 0.2, 0.3, 0.4}, rb{-0.3, 0.4, 0.25, -0.1};
    Values p{0.7, -0.8, 0.9};
    double x = 0.8, h = -0.6, c = 0.4;

    OptionalTensors operands() const {
        const auto t = [](Shape shape, const Values& v) { return tensor(DType::f64, std::move(shape), v); };
        return {t({1, 1}, {x}), t({4, 1}, w), t({4, 1}, r), t({1, 1}, {h}),
                t({1, 1}, {c}), t({4}, b),    t({4}, rb),   t({3}, p)};
    }
    double sum(int i) const { return w[i] * x + b[i] + r[i] * h + rb[i]; }
};

TEST(LstmCell, FollowsItsFormula) {
    const LstmScalar s;
    const double i = sigmoid(s.sum(0) + s.p[0] * s.c), o = sigmoid(s.sum(1) + s.p[1] * s.c);
    const double f = sigmoid(s.sum(2) + s.p[2] * s.c), c = f * s.c + i * std::tanh(s.sum(3));
    const auto out = run("lstm_cell", s.operands(), hidden(1));
    ASSERT_EQ(out.size(), 2u);
    EXPECT_NEAR(out[0].as<double>()[0], o * std::tanh(c), 1e-15);
    EXPECT_NEAR(out[1].as<double>()[0], c, 1e-15);
}

TEST(LstmCell, WorksWithoutItsOptions) {
    const LstmScalar s;
    auto in = s.operands();
    in.resize(5);
    const auto plain = [&](int i) { return s.w[i] * s.x + s.r[i] * s.h; };
    const double c = sigmoid(plain(2)) * s.c + sigmoid(plain(0)) * std::tanh(plain(3));
    const auto out = run("lstm_cell", in, hidden(1));
    EXPECT_NEAR(out[0].as<double>()[0], sigmoid(plain(1)) * std::tanh(c), 1e-15);
    EXPECT_NEAR(out[1].as<double>()[0], c, 1e-15);
}

TEST(LstmCell, OtherLayoutMovesTheGatesButNotThePeepholes) {
    LstmScalar s;
    const auto expected = run("lstm_cell", s.operands(), hidden(1));
    for (Values* v : {&s.w, &s.r, &s.b, &s.rb}) *v = {(*v)[0], (*v)[2], (*v)[3], (*v)[1]};
    const auto actual = run("lstm_cell", s.operands(), hidden(1, {{"layout", std::string("ifgo")}}));
    EXPECT_EQ(actual[0].bytes, expected[0].bytes);
    EXPECT_EQ(actual[1].bytes, expected[1].bytes);
}

TEST(LstmCell, AppliesEachActivationWhereItBelongs) {
    const LstmScalar s;
    const double i = std::max(0.0, s.sum(0) + s.p[0] * s.c), o = std::max(0.0, s.sum(1) + s.p[1] * s.c);
    const double f = std::max(0.0, s.sum(2) + s.p[2] * s.c), c = f * s.c + i * sigmoid(s.sum(3));
    const auto out =
        run("lstm_cell", s.operands(), hidden(1, {{"activations", std::string("relu,sigmoid,tanh")}}));
    EXPECT_NEAR(out[0].as<double>()[0], o * std::tanh(c), 1e-15);
    EXPECT_NEAR(out[1].as<double>()[0], c, 1e-15);
}

TEST(LstmCell, MultipliesBatchesByMatrices) {
    // The gates i and o are 1 by their biases, f is 0: the state is relu(W x + R h).
    std::vector<double> w(16, 0), r(16, 0);
    std::copy_n(std::array{1, 2, 3, 4}.begin(), 4, w.begin() + 12);
    std::copy_n(std::array{10, 20, 30, 40}.begin(), 4, r.begin() + 12);
    const auto out =
        run("lstm_cell",
            {tensor(DType::f32, {2, 2}, {1, 2, 3, 4}), tensor(DType::f32, {8, 2}, w),
             tensor(DType::f32, {8, 2}, r), tensor(DType::f32, {2, 2}, {1, 0, 0, 1}),
             tensor(DType::f32, {2, 2}, {7, 7, 7, 7}), tensor(DType::f32, {8}, {1, 1, 1, 1, 0, 0, 0, 0})},
            hidden(2, {{"activations", std::string("relu,relu,relu")}}));
    EXPECT_THAT(out[0].as<float>(), ElementsAre(15, 41, 31, 65));
    EXPECT_EQ(out[1].bytes, out[0].bytes);
}

struct LstmNetwork {
    std::int64_t steps = 3, batch = 2, inputs = 2, size = 3, directions = 1;
    TestTensor x = f64({steps, batch, inputs}, 1);

    OptionalTensors operands() const {
        return {x,
                f64({directions, 4 * size, inputs}, 2),
                f64({directions, 4 * size, size}, 3),
                f64({directions, 4 * size}, 4),
                f64({directions, 4 * size}, 5),
                f64({directions, 3 * size}, 6),
                f64({directions, batch, size}, 7),
                f64({directions, batch, size}, 8)};
    }
    struct States {
        std::vector<Values> hidden;  ///< after each step
        Values cell;                 ///< after the last
    };
    States by_cells(std::int64_t d, bool backward) const {
        const auto in = operands();
        const auto part = [&](std::size_t i, Shape shape) {
            const auto all = in[i]->as<double>();
            const auto count = static_cast<std::int64_t>(all.size()) / directions;
            return tensor(DType::f64, std::move(shape),
                          Values(all.begin() + d * count, all.begin() + (d + 1) * count));
        };
        States states;
        TestTensor h = part(6, {batch, size}), c = part(7, {batch, size});
        const auto input = x.as<double>();
        for (std::int64_t i = 0; i < steps; ++i) {
            const auto at = input.begin() + (backward ? steps - 1 - i : i) * batch * inputs;
            const auto step = tensor(DType::f64, {batch, inputs}, Values(at, at + batch * inputs));
            const auto out = run("lstm_cell",
                                 {step, part(1, {4 * size, inputs}), part(2, {4 * size, size}), h, c,
                                  part(3, {4 * size}), part(4, {4 * size}), part(5, {3 * size})},
                                 hidden_size());
            h = out[0];
            c = out[1];
            states.hidden.push_back(h.as<double>());
        }
        states.cell = c.as<double>();
        return states;
    }
    NamedAttrs hidden_size(NamedAttrs more = {}) const { return hidden(size, std::move(more)); }
};

void append(Values& to, const Values& from) { to.insert(to.end(), from.begin(), from.end()); }

TEST(Lstm, RepeatsTheCellInEitherDirection) {
    const LstmNetwork n;
    for (const bool backward : {false, true}) {
        const auto out = run("lstm", n.operands(),
                             n.hidden_size({{"return_sequence", true},
                                            {"direction", std::string(backward ? "backward" : "forward")}}));
        ASSERT_EQ(out.size(), 3u);
        EXPECT_EQ(out[2].type.shape, (Shape{3, 1, 2, 3}));
        const auto states = n.by_cells(0, backward);
        Values by_position;
        for (std::size_t i = 0; i < 3; ++i) append(by_position, states.hidden[backward ? 2 - i : i]);
        EXPECT_EQ(out[0].as<double>(), states.hidden.back());
        EXPECT_EQ(out[1].as<double>(), states.cell);
        EXPECT_EQ(out[2].as<double>(), by_position);
    }
}

TEST(Lstm, RunsBothDirectionsWithTheirOwnWeights) {
    LstmNetwork n;
    n.directions = 2;
    const auto out = run("lstm", n.operands(),
                         n.hidden_size({{"return_sequence", true}, {"direction", std::string("both")}}));
    const auto forward = n.by_cells(0, false), backward = n.by_cells(1, true);
    Values last = forward.hidden.back(), cells = forward.cell, all;
    append(last, backward.hidden.back());
    append(cells, backward.cell);
    for (std::size_t i = 0; i < 3; ++i) {
        append(all, forward.hidden[i]);
        append(all, backward.hidden[2 - i]);
    }
    EXPECT_EQ(out[0].as<double>(), last);
    EXPECT_EQ(out[1].as<double>(), cells);
    EXPECT_EQ(out[2].as<double>(), all);
}

TEST(Lstm, StartsAtZeroAndReturnsNoSequenceByDefault) {
    const LstmNetwork n;
    auto in = n.operands();
    const TestTensor zero = tensor(DType::f64, {1, 2, 3}, Values(6, 0));
    auto with_zero = in;
    with_zero[6] = with_zero[7] = zero;
    in.resize(6);
    const auto out = run("lstm", in, n.hidden_size()), expected = run("lstm", with_zero, n.hidden_size());
    ASSERT_EQ(out.size(), 2u);
    EXPECT_EQ(out[0].bytes, expected[0].bytes);
    EXPECT_EQ(out[1].bytes, expected[1].bytes);
}

TEST(Lstm, RejectsWhatDoesNotFit) {
    using Operands = std::vector<std::optional<TensorType>>;
    const Operands fitting{f32({4, 2, 5}), f32({1, 12, 5}), f32({1, 12, 3}), f32({1, 12}),
                           f32({1, 12}),   f32({1, 9}),     f32({1, 2, 3}),  f32({1, 2, 3})};
    EXPECT_EQ(infer_error("lstm", fitting, hidden(3, {{"steps", std::int64_t{4}}})), "");
    const auto error = [&](std::size_t i, Shape shape) {
        Operands types = fitting;
        types[i] = f32(std::move(shape));
        return infer_error("lstm", types, hidden(3));
    };
    EXPECT_EQ(error(1, {1, 12, 4}), "weight has shape [1, 12, 4] but must have shape [1, 12, 5]");
    EXPECT_EQ(error(2, {1, 9, 3}), "recurrent_weight has shape [1, 9, 3] but must have shape [1, 12, 3]");
    EXPECT_EQ(error(3, {1, 9}), "bias has shape [1, 9] but must have shape [1, 12]");
    EXPECT_EQ(error(4, {1, 9}), "recurrent_bias has shape [1, 9] but must have shape [1, 12]");
    EXPECT_EQ(error(5, {1, 12}), "peephole_weight has shape [1, 12] but must have shape [1, 9]");
    EXPECT_EQ(error(6, {1, 3, 2}), "initial_hidden_state has shape [1, 3, 2] but must have shape [1, 2, 3]");
    EXPECT_EQ(error(7, {2, 2, 3}), "initial_cell_state has shape [2, 2, 3] but must have shape [1, 2, 3]");
    EXPECT_EQ(infer_error("lstm", fitting, hidden(3, {{"steps", std::int64_t{2}}})),
              "steps is 2 but the input has 4 steps");
    EXPECT_EQ(infer_error("lstm", fitting, hidden(3, {{"activations", std::string("relu,relu")}})),
              "activations must be 3 names, got 'relu,relu'");
    EXPECT_THAT(infer_error("lstm", fitting, hidden(3, {{"layout", std::string("gofi")}})),
                HasSubstr("layout"));
    EXPECT_EQ(infer_error("lstm_cell", {f32({2, 5}), f32({12, 5}), f32({12, 3}), f32({2, 3}), f32({1, 3})},
                          hidden(3)),
              "cell_state has shape [1, 3] but must have shape [2, 3]");
    const Dim steps = Dim::symbolic("steps"), batch = Dim::symbolic("batch");
    const auto out = infer("lstm", {f32({steps, batch, 5}), f32({1, 12, 5}), f32({1, 12, 3})},
                           hidden(3, {{"return_sequence", true}}));
    EXPECT_EQ(out.value()[1], f32({1, batch, 3}));
    EXPECT_EQ(out.value()[2], f32({steps, 1, batch, 3}));
}

}  // namespace
}  // namespace headrace::testing
