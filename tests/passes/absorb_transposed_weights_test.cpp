#include <gtest/gtest.h>

#include "passes/interpret.h"
#include "passes/tiny_graph.h"

namespace headrace::testing {
namespace {

using Axes = std::vector<std::int64_t>;

TEST(AbsorbTransposedWeights, ReadsTheMatrixOfAMatmulAsItLies) {
    TinyGraph t;
    const ValueId w = t.op("transpose", {t.constant("w", {5, 3})}, {{"permutation", Axes{1, 0}}});
    t.output("y", t.op("matmul", {t.input("x", {2, 4, 3}), w}, {}, "dense"));
    Graph graph = t.finish();
    const Graph before = graph;
    EXPECT_EQ(run_pass("absorb_transposed_weights", graph), (Counts{{"transposes_absorbed", 1}}));
    EXPECT_EQ(formula(graph, "y"), "fused_matmul(x, w) {transpose_b=true}");
    EXPECT_EQ(graph.nodes.size(), 1U);
    EXPECT_EQ(graph.nodes[0].label, "dense");
    expect_same_results(before, graph);
}

TEST(AbsorbTransposedWeights, TogglesTheFlagOfGemmAndFusedMatmul) {
    TinyGraph t;
    const ValueId x = t.input("x", {2, 3});
    const ValueId tall = t.op("transpose", {t.constant("tall", {5, 3})});
    const ValueId wide = t.op("transpose", {t.constant("wide", {3, 5})});
    t.output("a", t.op("gemm", {x, tall}, {{"alpha", 0.5}}));
    t.output("b", t.op("gemm", {x, wide}, {{"b_transpose", true}}));
    t.output("c",
             t.op("fused_matmul", {x, wide}, {{"transpose_b", true}, {"activation", std::string("relu")}}));
    Graph graph = t.finish();
    const Graph before = graph;
    EXPECT_EQ(run_pass("absorb_transposed_weights", graph).at("transposes_absorbed"), 3);
    EXPECT_EQ(formula(graph, "a"), "gemm(x, tall) {alpha=0.5, b_transpose=true}");
    EXPECT_EQ(formula(graph, "b"), "gemm(x, wide)");
    EXPECT_EQ(formula(graph, "c"), "fused_matmul(x, wide) {activation=\"relu\"}");
    EXPECT_EQ(graph.nodes.size(), 3U);
    expect_same_results(before, graph);
}

TEST(AbsorbTransposedWeights, KeepsATransposeThatOthersRead) {
    TinyGraph t;
    const ValueId w = t.op("transpose", {t.constant("w", {5, 3})});
    t.output("y", t.op("matmul", {t.input("x", {2, 3}), w}));
    t.output("w'", w);
    Graph graph = t.finish();
    EXPECT_EQ(run_pass("absorb_transposed_weights", graph).at("transposes_absorbed"), 1);
    EXPECT_EQ(formula(graph, "w'"), "transpose(w)");
}

TEST(AbsorbTransposedWeights, LeavesBatchesActivationsAndOtherOperandsAlone) {
    TinyGraph t;
    const ValueId x = t.input("x", {3, 3});
    const ValueId w = t.op("transpose", {t.constant("w", {3, 3})});
    const ValueId batch =
        t.op("transpose", {t.constant("batch", {2, 3, 3})}, {{"permutation", Axes{0, 2, 1}}});
    t.output("a", t.op("matmul", {w, x}));
    t.output("b", t.op("matmul", {x, batch}));
    t.output("c", t.op("matmul", {x, t.op("transpose", {x})}));
    t.output("d", t.op("add", {x, w}));
    Graph graph = t.finish();
    EXPECT_EQ(run_pass("absorb_transposed_weights", graph).at("transposes_absorbed"), 0);
}

}  // namespace
}  // namespace headrace::testing
