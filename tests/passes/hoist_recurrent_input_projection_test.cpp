#include <gmock/gmock.h>

#include "passes/interpret.h"
#include "passes/tiny_graph.h"

namespace headrace::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::int64_t kHidden = 16, kInputs = 3, kBatch = 2, kSteps = 4;

struct Network : TinyGraph {
    Network(std::string_view op_name, std::int64_t directions = 1, std::int64_t hidden = kHidden)
        : op_name_(op_name), directions_(directions), hidden_(hidden) {}

    Shape many(Shape shape) const {
        if (op_name_ == "lstm") shape.insert(shape.begin(), directions_);
        return shape;
    }
    /// An operand that is read when the graph runs, or a constant.
    ValueId operand(const std::string& name, Shape shape, unsigned seed) {
        return are_constant ? constant(name, many(std::move(shape)), seed)
                            : input(name, many(std::move(shape)));
    }
    void build(bool biases, bool peephole, bool states, NamedAttrs attrs = {}) {
        attrs.emplace_back("hidden_size", hidden_);
        const bool is_cell = op_name_ == "lstm_cell";
        const Shape state{kBatch, hidden_};
        const ValueId x = input("x", is_cell ? Shape{kBatch, kInputs} : Shape{kSteps, kBatch, kInputs}),
                      w = operand("w", {4 * hidden_, kInputs}, 1),
                      r = operand("r", {4 * hidden_, hidden_}, 2),
                      b = biases ? operand("b", {4 * hidden_}, 3) : kNoValue,
                      rb = biases && !only_one_bias ? operand("rb", {4 * hidden_}, 4) : kNoValue,
                      p = peephole ? operand("p", {3 * hidden_}, 5) : kNoValue,
                      h = states ? input("h", many(state)) : kNoValue,
                      c = states ? input("c", many(state)) : kNoValue;
        const auto results = is_cell ? TinyGraph::many("lstm_cell", {x, w, r, h, c, b, rb, p}, attrs)
                                     : TinyGraph::many("lstm", {x, w, r, b, rb, p, h, c}, attrs);
        for (std::size_t i = 0; i < results.size(); ++i) output("y" + std::to_string(i), results[i]);
    }
    /// The formula of the first result after the pass, which must compute the same of all.
    std::string split() {
        Graph graph = finish();
        const Graph before = graph;
        counts = run_pass("hoist_recurrent_input_projection", graph);
        expect_same_results(before, graph, 1e-5);
        return formula(graph, "y0");
    }

    Counts counts;
    bool are_constant = true, only_one_bias = false;

private:
    std::string op_name_;
    std::int64_t directions_, hidden_;
};

TEST(MultiplyRecurrentInputs, LeavesTheStepsOfASequence) {
    Network t("lstm");
    t.build(false, false, false);
    EXPECT_EQ(t.split(), "lstm_recurrence(fused_matmul(x, w) {transpose_b=true}, r) {hidden_size=16}#0");
    EXPECT_EQ(t.counts, (Counts{{"recurrences", 1}}));
}

TEST(MultiplyRecurrentInputs, AddsTheBiasesOnce) {
    Network t("lstm");
    t.build(true, false, false);
    EXPECT_THAT(t.split(), HasSubstr("fused_matmul(x, w, reshape(add(b, rb)) {new_shape=[64]})"));
    Network one("lstm");
    one.only_one_bias = true;
    one.build(true, false, false);
    EXPECT_THAT(one.split(), HasSubstr("fused_matmul(x, w, b)"));
}

TEST(MultiplyRecurrentInputs, KeepsDirectionsLayoutsActivationsPeepholesAndStates) {
    for (const char* direction : {"forward", "backward", "both"})
        for (const char* layout : {"iofg", "ifgo"})
            for (const bool given : {false, true}) {
                Network t("lstm", std::string_view(direction) == "both" ? 2 : 1, 17);
                t.build(given, given, given,
                        {{"direction", std::string(direction)},
                         {"layout", std::string(layout)},
                         {"return_sequence", given},
                         {"steps", kSteps},
                         {"activations", std::string(given ? "relu,sigmoid,tanh" : "sigmoid,tanh,tanh")}});
                EXPECT_THAT(t.split(), StartsWith("lstm_recurrence(fused_matmul(")) << direction << layout;
            }
}

TEST(MultiplyRecurrentInputs, TakesWeightsThatAreGivenWhenTheGraphRuns) {
    Network t("lstm");
    t.are_constant = false;
    t.build(true, true, true);
    EXPECT_THAT(t.split(), HasSubstr("fused_matmul(x, reshape(w) {new_shape=[64, 3]}, "));
}

TEST(MultiplyRecurrentInputs, MakesACellASequenceOfOneStep) {
    for (const bool given : {false, true})
        for (const bool are_constant : {false, true}) {
            Network t("lstm_cell");
            t.are_constant = are_constant;
            t.build(given, given, true);
            EXPECT_THAT(t.split(), StartsWith("reshape(lstm_recurrence(reshape(fused_matmul(x, w"));
        }
}

TEST(MultiplyRecurrentInputs, LeavesFewValuesAndDoublesToTheReference) {
    Network few("lstm", 1, 15);
    few.build(false, false, false);
    EXPECT_THAT(few.split(), StartsWith("lstm("));
    EXPECT_EQ(few.counts, (Counts{{"recurrences", 0}}));
    TinyGraph t;
    const ValueId y =
        t.op("lstm",
             {t.input("x", {kSteps, kBatch, kInputs}, DType::f64), t.input("w", {1, 64, kInputs}, DType::f64),
              t.input("r", {1, 64, 16}, DType::f64)},
             {{"hidden_size", kHidden}});
    t.output("y", y);
    Graph graph = t.finish();
    run_pass("hoist_recurrent_input_projection", graph);
    EXPECT_THAT(formula(graph, "y"), Not(HasSubstr("recurrence")));
}

TEST(MultiplyRecurrentInputs, WorksForAnyNumberOfStepsAndRows) {
    TinyGraph t;
    const Dim steps = Dim::symbolic("steps"), batch = Dim::symbolic("batch");
    const auto out = t.many("lstm",
                            {t.input("x", {steps, batch, kInputs}), t.constant("w", {1, 64, kInputs}),
                             t.constant("r", {1, 64, 16})},
                            {{"hidden_size", kHidden}, {"return_sequence", true}});
    t.output("y", out[2]);
    Graph graph = t.finish();
    run_pass("hoist_recurrent_input_projection", graph);
    EXPECT_THAT(formula(graph, "y"), StartsWith("lstm_recurrence(fused_matmul(x, "));
}

struct GruNetwork : TinyGraph {
    bool is_cell = false, are_constant = true;

    std::string split(std::int64_t directions, bool given, NamedAttrs attrs = {}) {
        const auto many = [&](Shape shape) {
            if (!is_cell) shape.insert(shape.begin(), directions);
            return shape;
        };
        const auto operand = [&](const std::string& name, Shape shape, unsigned seed) {
            return are_constant ? constant(name, many(std::move(shape)), seed)
                                : input(name, many(std::move(shape)));
        };
        attrs.emplace_back("hidden_size", kHidden);
        const ValueId x = input("x", is_cell ? Shape{kBatch, kInputs} : Shape{kSteps, kBatch, kInputs}),
                      w = operand("w", {3 * kHidden, kInputs}, 1),
                      r = operand("r", {3 * kHidden, kHidden}, 2),
                      b = given ? operand("b", {3 * kHidden}, 3) : kNoValue,
                      rb = given ? operand("rb", {3 * kHidden}, 4) : kNoValue,
                      h = given || is_cell ? input("h", many({kBatch, kHidden})) : kNoValue;
        const auto results = is_cell ? TinyGraph::many("gru_cell", {x, w, r, h, b, rb}, attrs)
                                     : TinyGraph::many("gru", {x, w, r, b, rb, h}, attrs);
        for (std::size_t i = 0; i < results.size(); ++i) output("y" + std::to_string(i), results[i]);
        Graph graph = finish();
        const Graph before = graph;
        run_pass("hoist_recurrent_input_projection", graph);
        expect_same_results(before, graph, 1e-5);
        return formula(graph, "y0");
    }
};

TEST(MultiplyRecurrentInputs, LeavesTheRecurrentBiasOfAGruToItsSteps) {
    GruNetwork plain, given;
    EXPECT_EQ(plain.split(1, false),
              "gru_recurrence(fused_matmul(x, w) {transpose_b=true}, r) {hidden_size=16}");
    EXPECT_EQ(given.split(1, true),
              "gru_recurrence(fused_matmul(x, w, b) {transpose_b=true}, r, rb, h) {hidden_size=16}");
}

TEST(MultiplyRecurrentInputs, KeepsDirectionsLayoutsActivationsAndResetsOfAGru) {
    for (const char* direction : {"forward", "backward", "both"})
        for (const char* layout : {"zrn", "rzn"})
            for (const bool after : {false, true})
                for (const bool given : {false, true}) {
                    GruNetwork t;
                    const NamedAttrs attrs{
                        {"direction", std::string(direction)},
                        {"layout", std::string(layout)},
                        {"reset_after", after},
                        {"return_sequence", given},
                        {"activations", std::string(given ? "tanh,sigmoid" : "sigmoid,tanh")}};
                    EXPECT_THAT(t.split(std::string_view(direction) == "both" ? 2 : 1, given, attrs),
                                StartsWith("gru_recurrence(fused_matmul("))
                        << direction << layout << after << given;
                }
}

TEST(MultiplyRecurrentInputs, MakesAGruCellASequenceOfOneStep) {
    for (const bool given : {false, true})
        for (const bool are_constant : {false, true}) {
            GruNetwork t;
            t.is_cell = true, t.are_constant = are_constant;
            EXPECT_THAT(t.split(1, given), StartsWith("reshape(gru_recurrence(reshape(fused_matmul(x, w"));
        }
}

}  // namespace
}  // namespace headrace::testing
