#include <gtest/gtest.h>

#include "passes/interpret.h"
#include "passes/tiny_graph.h"

namespace headrace::testing {
namespace {

TEST(EliminateDeadCode, KeepsWhatOutputsNeedAndRemovesTheRest) {
    TinyGraph t;
    const ValueId x = t.input("x", {2, 3});
    const ValueId unused = t.constant("unused", {3});
    const ValueId dead = t.op("add", {x, unused});
    t.op("relu", {dead});
    t.output("y", t.op("tanh", {x}));
    Graph graph = t.finish();
    const Graph before = graph;
    EXPECT_EQ(run_pass("eliminate_dead_code", graph), (Counts{{"nodes_removed", 2}, {"values_removed", 3}}));
    EXPECT_EQ(formula(graph, "y"), "tanh(x)");
    EXPECT_EQ(graph.values.size(), 2U);
    expect_same_results(before, graph);
}

TEST(EliminateDeadCode, KeepsStateWritesAndWhatTheyNeed) {
    TinyGraph t;
    const ValueId x = t.input("x", {2});
    const ValueId state = t.state("total", {2});
    t.op("accumulate", {state, t.op("neg", {x})});
    t.op("exp", {x});
    t.output("x", x);
    Graph graph = t.finish();
    const Graph before = graph;
    EXPECT_EQ(run_pass("eliminate_dead_code", graph).at("nodes_removed"), 1);
    ASSERT_EQ(graph.nodes.size(), 2U);
    EXPECT_EQ(formula(graph, graph.nodes[1].outputs[0]), "accumulate(total, neg(x))");
    expect_same_results(before, graph);
}

TEST(EliminateDeadCode, KeepsUnusedInputsAndStates) {
    TinyGraph t;
    t.input("unused", {4});
    t.state("idle", {4});
    t.output("y", t.op("relu", {t.input("x", {4})}));
    Graph graph = t.finish();
    EXPECT_EQ(run_pass("eliminate_dead_code", graph).at("values_removed"), 0);
    EXPECT_EQ(graph.inputs.size(), 2U);
    EXPECT_EQ(graph.states.size(), 1U);
}

TEST(EliminateDeadCode, KeepsANodeOfWhichOneOutputIsUsed) {
    TinyGraph t;
    const auto parts = t.many("split", {t.input("x", {4, 2})}, {{"splits", std::vector<std::int64_t>{1, 3}}});
    t.output("y", parts[1]);
    Graph graph = t.finish();
    EXPECT_EQ(run_pass("eliminate_dead_code", graph).at("nodes_removed"), 0);
    EXPECT_EQ(graph.nodes[0].outputs.size(), 2U);
}

}  // namespace
}  // namespace headrace::testing
