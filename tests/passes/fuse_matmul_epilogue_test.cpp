#include <gtest/gtest.h>

#include "passes/interpret.h"
#include "passes/tiny_graph.h"

namespace headrace::testing {
namespace {

/// x[2, 4, 3] · w[3, 5] and the operands that may follow.
struct Dense : TinyGraph {
    ValueId x = input("x", {2, 4, 3}), w = constant("w", {3, 5}), b = constant("b", {5}, 2);
    ValueId r = input("r", {2, 4, 5});
    ValueId product = op("matmul", {x, w}, {}, "dense");

    /// The formula of y after the pass, which must compute the same.
    std::string fuse(ValueId y) {
        output("y", y);
        Graph graph = finish();
        const Graph before = graph;
        counts = run_pass("fuse_matmul_epilogue", graph);
        expect_same_results(before, graph, kTolerance);
        nodes = graph.nodes.size();
        label = nodes > 0 ? graph.nodes.back().label : "";
        return formula(graph, "y");
    }
    Counts counts;
    std::size_t nodes = 0;
    std::string label;
};

TEST(FuseMatmulEpilogue, JoinsBiasActivationAndResidual) {
    Dense t;
    const ValueId y = t.op("add", {t.op("gelu", {t.op("add", {t.product, t.b})}), t.r});
    EXPECT_EQ(t.fuse(y), "fused_matmul(x, w, b, r) {activation=\"gelu\"}");
    EXPECT_EQ(t.counts, (Counts{{"products", 1}, {"biases", 1}, {"activations", 1}, {"residuals", 1}}));
    EXPECT_EQ(t.nodes, 1U);
    EXPECT_EQ(t.label, "dense");
}

TEST(FuseMatmulEpilogue, TakesWhicheverPartsThereAre) {
    {
        Dense t;
        EXPECT_EQ(t.fuse(t.op("add", {t.b, t.product})), "fused_matmul(x, w, b)");
    }
    {
        Dense t;
        EXPECT_EQ(t.fuse(t.op("add", {t.r, t.product})), "fused_matmul(x, w, _, r)");
    }
    {
        Dense t;
        EXPECT_EQ(t.fuse(t.op("add", {t.op("add", {t.product, t.b}), t.r})), "fused_matmul(x, w, b, r)");
    }
    {
        Dense t;
        EXPECT_EQ(t.fuse(t.product), "matmul(x, w)");
        EXPECT_EQ(t.label, "dense");
    }
}

TEST(FuseMatmulEpilogue, KnowsEveryActivationOfTheFusedOp) {
    for (const std::string name : {"relu", "gelu", "tanh", "sigmoid", "silu"}) {
        Dense t;
        EXPECT_EQ(t.fuse(t.op(name, {t.product})), "fused_matmul(x, w) {activation=\"" + name + "\"}");
    }
    Dense t;
    EXPECT_EQ(t.fuse(t.op("exp", {t.product})), "exp(matmul(x, w))");
}

TEST(FuseMatmulEpilogue, KeepsTheOrderOfTheParts) {
    {
        Dense t;  // a bias after the activation is none
        EXPECT_EQ(t.fuse(t.op("add", {t.op("relu", {t.product}), t.b})),
                  "add(fused_matmul(x, w) {activation=\"relu\"}, b)");
    }
    {
        Dense t;  // an activation after the residual stays outside
        EXPECT_EQ(t.fuse(t.op("relu", {t.op("add", {t.product, t.r})})), "relu(fused_matmul(x, w, _, r))");
    }
    {
        Dense t;
        EXPECT_EQ(t.fuse(t.op("tanh", {t.op("relu", {t.product})})),
                  "tanh(fused_matmul(x, w) {activation=\"relu\"})");
    }
}

TEST(FuseMatmulEpilogue, TakesARowOfHigherRankAsBias) {
    Dense t;
    EXPECT_EQ(t.fuse(t.op("add", {t.product, t.constant("row", {1, 1, 5})})), "fused_matmul(x, w, row)");
    Dense other;
    EXPECT_EQ(other.fuse(other.op("add", {other.product, other.constant("column", {4, 1})})),
              "add(matmul(x, w), column)");
}

TEST(FuseMatmulEpilogue, LeavesABroadcastThatMakesTheResultLarger) {
    Dense t;
    EXPECT_EQ(t.fuse(t.op("add", {t.product, t.constant("large", {3, 2, 4, 5})})),
              "add(matmul(x, w), large)");
    Dense row;
    EXPECT_EQ(row.fuse(row.op("add", {row.product, row.constant("row", {1, 1, 1, 5})})),
              "add(matmul(x, w), row)");
}

TEST(FuseMatmulEpilogue, LeavesIntermediatesThatAreReadElsewhere) {
    {
        Dense t;
        const ValueId sum = t.op("add", {t.product, t.b});
        t.output("sum", sum);
        EXPECT_EQ(t.fuse(t.op("relu", {sum})), "relu(fused_matmul(x, w, b))");
    }
    {
        Dense t;
        EXPECT_EQ(t.fuse(t.op("add", {t.product, t.op("relu", {t.product})})),
                  "add(matmul(x, w), relu(matmul(x, w)))");
    }
    {
        Dense t;
        EXPECT_EQ(t.fuse(t.op("add", {t.product, t.product})), "add(matmul(x, w), matmul(x, w))");
    }
}

TEST(FuseMatmulEpilogue, GivesASumOfTwoProductsToOneOfThem) {
    Dense t;
    const ValueId other = t.op("add", {t.op("matmul", {t.x, t.constant("v", {3, 5}, 9)}), t.b});
    EXPECT_EQ(t.fuse(t.op("relu", {t.op("add", {t.product, other})})),
              "relu(fused_matmul(x, w, _, fused_matmul(x, v, b)))");
}

TEST(FuseMatmulEpilogue, NeedsAConstantMatrix) {
    TinyGraph t;
    const ValueId x = t.input("x", {2, 3}), y = t.input("y", {3, 5});
    const ValueId batch = t.constant("batch", {2, 3, 5});
    t.output("a", t.op("relu", {t.op("matmul", {x, y})}));
    t.output("b", t.op("relu", {t.op("matmul", {x, batch})}));
    Graph graph = t.finish();
    EXPECT_EQ(run_pass("fuse_matmul_epilogue", graph).at("products"), 0);
}

TEST(FuseMatmulEpilogue, UnderstandsGemm) {
    TinyGraph t;
    const ValueId x = t.input("x", {2, 3}), w = t.constant("w", {5, 3}), c = t.constant("c", {1, 5});
    const ValueId r = t.input("r", {2, 5});
    const NamedAttrs transposed{{"b_transpose", true}};
    const auto with = [&](const std::string& name, double value) {
        return NamedAttrs{{"b_transpose", true}, {name, value}};
    };
    t.output("plain", t.op("gemm", {x, w, c}, transposed));
    t.output("fused", t.op("add", {t.op("tanh", {t.op("gemm", {x, w, c}, transposed)}), r}));
    t.output("bias", t.op("add", {t.op("gemm", {x, w}, transposed), c}));
    t.output("alpha", t.op("tanh", {t.op("gemm", {x, w, c}, with("alpha", 2))}));
    t.output("beta", t.op("tanh", {t.op("gemm", {x, w, c}, with("beta", 2))}));
    t.output("matrix", t.op("tanh", {t.op("gemm", {x, w, r}, transposed)}));
    Graph graph = t.finish();
    const Graph before = graph;
    EXPECT_EQ(run_pass("fuse_matmul_epilogue", graph).at("products"), 2);
    EXPECT_EQ(formula(graph, "plain"), "gemm(x, w, c) {b_transpose=true}");
    EXPECT_EQ(formula(graph, "fused"), "fused_matmul(x, w, c, r) {transpose_b=true, activation=\"tanh\"}");
    EXPECT_EQ(formula(graph, "bias"), "fused_matmul(x, w, c) {transpose_b=true}");
    EXPECT_EQ(formula(graph, "alpha"), "tanh(gemm(x, w, c) {alpha=2, b_transpose=true})");
    EXPECT_EQ(formula(graph, "beta"), "tanh(gemm(x, w, c) {beta=2, b_transpose=true})");
    EXPECT_EQ(formula(graph, "matrix"), "tanh(gemm(x, w, r) {b_transpose=true})");
    expect_same_results(before, graph, kTolerance);
}

TEST(FuseMatmulEpilogue, ExtendsAFusedMatmul) {
    Dense t;
    const ValueId fused = t.op("fused_matmul", {t.x, t.w, t.b});
    EXPECT_EQ(t.fuse(t.op("add", {t.op("relu", {fused}), t.r})),
              "fused_matmul(x, w, b, r) {activation=\"relu\"}");
    EXPECT_EQ(t.counts, (Counts{{"products", 1}, {"biases", 0}, {"activations", 1}, {"residuals", 1}}));
}

TEST(FuseMatmulEpilogue, DoesNotReadAStateAfterItsWrite) {
    TinyGraph t;
    const ValueId x = t.input("x", {2, 3});
    const ValueId state = t.state("s", {2, 3});
    const ValueId product =
        t.op("add", {t.op("matmul", {state, t.constant("w", {3, 5})}), t.constant("b", {5})});
    const ValueId written = t.op("assign", {state, x});
    t.output("y", t.op("relu", {product}));
    t.output("z", written);
    Graph graph = t.finish();
    const Graph before = graph;
    EXPECT_EQ(run_pass("fuse_matmul_epilogue", graph).at("biases"), 1);
    EXPECT_EQ(formula(graph, "y"), "relu(fused_matmul(s, w, b))");
    expect_same_results(before, graph, kTolerance);
}

TEST(FuseMatmulEpilogue, WorksOnSymbolicShapes) {
    TinyGraph t;
    const ValueId x = t.input("x", {1, Dim::symbolic("seq"), 3});
    const ValueId product = t.op("matmul", {x, t.constant("w", {3, 5})});
    t.output("y", t.op("relu", {t.op("add", {product, t.constant("b", {5})})}));
    Graph graph = t.finish();
    run_pass("fuse_matmul_epilogue", graph);
    EXPECT_EQ(formula(graph, "y"), "fused_matmul(x, w, b) {activation=\"relu\"}");
}

}  // namespace
}  // namespace headrace::testing
