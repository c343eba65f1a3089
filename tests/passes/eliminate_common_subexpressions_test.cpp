#include <gtest/gtest.h>

#include <numeric>

#include "passes/interpret.h"
#include "passes/tiny_graph.h"

namespace headrace::testing {
namespace {

TEST(EliminateCommonSubexpressions, MergesNodesAndThenTheirReaders) {
    TinyGraph t;
    const ValueId x = t.input("x", {2, 3}), y = t.input("y", {2, 3});
    const ValueId a = t.op("tanh", {t.op("add", {x, y})});
    const ValueId b = t.op("tanh", {t.op("add", {x, y})});
    t.output("product", t.op("mul", {a, b}));
    Graph graph = t.finish();
    const Graph before = graph;
    EXPECT_EQ(run_pass("eliminate_common_subexpressions", graph),
              (Counts{{"constants_merged", 0}, {"nodes_removed", 2}}));
    EXPECT_EQ(graph.nodes.size(), 3U);
    EXPECT_EQ(graph.values.size(), 5U) << "orphaned values must go";
    expect_same_results(before, graph);
}

TEST(EliminateCommonSubexpressions, TellsOpsOperandsAndAttributesApart) {
    TinyGraph t;
    const ValueId x = t.input("x", {2, 2}), y = t.input("y", {2, 2});
    const auto concat = [&](std::vector<ValueId> operands, std::int64_t axis) {
        return t.op("concat", std::move(operands), {{"axis", axis}});
    };
    int i = 0;
    for (ValueId id : {t.op("add", {x, y}), t.op("add", {y, x}), t.op("sub", {x, y}), concat({x, y}, 0),
                       concat({x, y}, 1), concat({x, y, y}, 0)})
        t.output(std::to_string(i++), id);
    Graph graph = t.finish();
    EXPECT_EQ(run_pass("eliminate_common_subexpressions", graph).at("nodes_removed"), 0);
}

TEST(EliminateCommonSubexpressions, TellsMinusZeroFromZero) {
    TinyGraph t;
    const ValueId x = t.input("x", {2});
    const std::vector<std::int64_t> one{1};
    for (const double value : {0.0, -0.0, 0.0})
        t.output("pad " + std::to_string(t.builder.graph().nodes.size()),
                 t.op("pad", {x}, {{"beginning_padding", one}, {"ending_padding", one}, {"value", value}}));
    Graph graph = t.finish();
    EXPECT_EQ(run_pass("eliminate_common_subexpressions", graph).at("nodes_removed"), 1);
}

TEST(EliminateCommonSubexpressions, MergesAllOutputsOfANode) {
    TinyGraph t;
    const ValueId x = t.input("x", {4, 2});
    const NamedAttrs attrs{{"splits", std::vector<std::int64_t>{1, 3}}};
    const auto a = t.many("split", {x}, attrs), b = t.many("split", {x}, attrs);
    t.output("a", a[1]);
    t.output("b", b[1]);
    t.output("c", b[0]);
    Graph graph = t.finish();
    const Graph before = graph;
    EXPECT_EQ(run_pass("eliminate_common_subexpressions", graph).at("nodes_removed"), 1);
    EXPECT_EQ(graph.outputs[0].second, graph.outputs[1].second);
    expect_same_results(before, graph);
}

TEST(EliminateCommonSubexpressions, NeverMergesStateWrites) {
    TinyGraph t;
    const ValueId x = t.input("x", {2});
    t.output("a", t.op("accumulate", {t.state("first", {2}), x}));
    t.output("b", t.op("accumulate", {t.state("second", {2}), x}));
    Graph graph = t.finish();
    EXPECT_EQ(run_pass("eliminate_common_subexpressions", graph).at("nodes_removed"), 0);
}

TEST(EliminateCommonSubexpressions, MergesConstantsOfEqualTypeAndBytes) {
    TinyGraph t;
    const ValueId x = t.input("x", {2, 500});
    const ValueId a = t.op("add", {x, t.constant("a", {500}, 7)});
    const ValueId b = t.op("add", {x, t.constant("b", {500}, 7)});
    const ValueId c = t.op("add", {x, t.constant("c", {1, 500}, 7)});
    const ValueId d = t.op("add", {x, t.constant("d", {500}, 8)});
    t.output("y", t.op("concat", {a, b, c, d}, {{"axis", std::int64_t{0}}}));
    Graph graph = t.finish();
    const Graph before = graph;
    EXPECT_EQ(run_pass("eliminate_common_subexpressions", graph),
              (Counts{{"constants_merged", 1}, {"nodes_removed", 1}}));
    EXPECT_EQ(formula(graph, "y"), "concat(add(x, a), add(x, a), add(x, c), add(x, d)) {axis=0}");
    expect_same_results(before, graph);
}

TEST(EliminateCommonSubexpressions, TellsConstantsApartThatAgreeInTheirSamples) {
    TinyGraph t;
    const ValueId x = t.input("x", {1000});
    std::vector<float> values(1000);
    std::iota(values.begin(), values.end(), 0.0F);
    const ValueId a = t.constant("a", DType::f32, {1000}, values);
    values[300] = -1;
    const ValueId b = t.constant("b", DType::f32, {1000}, values);
    const ValueId c = t.constant("c", DType::f32, {1000}, values);
    t.output("y", t.op("mul", {t.op("add", {x, a}), t.op("add", {t.op("add", {x, b}), c})}));
    Graph graph = t.finish();
    EXPECT_EQ(run_pass("eliminate_common_subexpressions", graph).at("constants_merged"), 1);
    EXPECT_EQ(formula(graph, "y"), "mul(add(x, a), add(add(x, b), b))");
}

}  // namespace
}  // namespace headrace::testing
