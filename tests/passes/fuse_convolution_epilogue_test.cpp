#include <gtest/gtest.h>

#include "passes/interpret.h"
#include "passes/tiny_graph.h"

namespace headrace::testing {
namespace {

/// A convolution of x[1, 3, 4, 5] with a bias, and an operand that may follow.
struct Layer : TinyGraph {
    ValueId x = input("x", {1, 3, 4, 5}), w = constant("w", {2, 3, 1, 1}), b = constant("b", {2}, 2);
    ValueId r = input("r", {1, 2, 4, 5});
    ValueId conv = op("conv2d", {x, w, b}, {}, "first");

    ValueId relu6(ValueId id) { return op("clamp", {id}, {{"min_value", 0.0}, {"max_value", 6.0}}); }

    /// The formula of y after the pass, which must compute the same.
    std::string fuse(ValueId y) {
        output("y", y);
        Graph graph = finish();
        const Graph before = graph;
        counts = run_pass("fuse_convolution_epilogue", graph);
        expect_same_results(before, graph, kTolerance);
        nodes = graph.nodes.size();
        label = nodes > 0 ? graph.nodes.back().label : "";
        return formula(graph, "y");
    }
    Counts counts;
    std::size_t nodes = 0;
    std::string label;
};

TEST(FuseConvolutionEpilogue, JoinsActivationAndThenResidual) {
    Layer t;
    const ValueId y = t.op("add", {t.op("silu", {t.conv}), t.r});
    EXPECT_EQ(t.fuse(y), "fused_conv2d(x, w, b, r) {activation=\"silu\"}");
    EXPECT_EQ(t.counts, (Counts{{"convolutions", 1}, {"activations", 1}, {"residuals", 1}}));
    EXPECT_EQ(t.nodes, 1U);
    EXPECT_EQ(t.label, "first");
}

TEST(FuseConvolutionEpilogue, JoinsResidualAndThenActivation) {
    Layer t;
    EXPECT_EQ(t.fuse(t.op("relu", {t.op("add", {t.r, t.conv})})),
              "fused_conv2d(x, w, b, r) {activation=\"relu\", residual_first=true}");
    EXPECT_EQ(t.counts, (Counts{{"convolutions", 1}, {"activations", 1}, {"residuals", 1}}));
}

TEST(FuseConvolutionEpilogue, TakesWhicheverPartsThereAre) {
    {
        Layer t;
        EXPECT_EQ(t.fuse(t.op("relu", {t.conv})), "fused_conv2d(x, w, b) {activation=\"relu\"}");
    }
    {
        Layer t;
        EXPECT_EQ(t.fuse(t.op("add", {t.conv, t.r})), "fused_conv2d(x, w, b, r)");
    }
    {
        Layer t;
        EXPECT_EQ(t.fuse(t.op("add", {t.op("conv2d", {t.x, t.w}), t.r})), "fused_conv2d(x, w, _, r)");
    }
    {
        Layer t;
        EXPECT_EQ(t.fuse(t.conv), "conv2d(x, w, b)");
        EXPECT_EQ(t.label, "first");
    }
}

TEST(FuseConvolutionEpilogue, TakesTheLimitsOfAClamp) {
    {
        Layer t;
        EXPECT_EQ(t.fuse(t.relu6(t.conv)), "fused_conv2d(x, w, b) {min_value=0, max_value=6}");
        EXPECT_EQ(t.counts, (Counts{{"convolutions", 1}, {"activations", 1}, {"residuals", 0}}));
    }
    {
        Layer t;
        EXPECT_EQ(t.fuse(t.relu6(t.op("add", {t.conv, t.r}))),
                  "fused_conv2d(x, w, b, r) {min_value=0, max_value=6, residual_first=true}");
    }
    {
        Layer t;
        EXPECT_EQ(t.fuse(t.op("clamp", {t.conv}, {{"max_value", std::int64_t{1}}, {"min_value", NAN}})),
                  "fused_conv2d(x, w, b) {max_value=1}");
    }
    {
        Layer t;
        EXPECT_EQ(t.fuse(t.op("clamp", {t.conv}, {{"min_value", std::uint64_t{1}}})),
                  "fused_conv2d(x, w, b) {min_value=1}");
    }
}

TEST(FuseConvolutionEpilogue, KnowsEveryActivationOfTheFusedOp) {
    for (const std::string name : {"relu", "gelu", "tanh", "sigmoid", "silu"}) {
        Layer t;
        EXPECT_EQ(t.fuse(t.op(name, {t.conv})), "fused_conv2d(x, w, b) {activation=\"" + name + "\"}");
    }
    Layer t;
    EXPECT_EQ(t.fuse(t.op("exp", {t.conv})), "exp(conv2d(x, w, b))");
}

TEST(FuseConvolutionEpilogue, TakesOneActivationAndOneResidual) {
    {
        Layer t;
        EXPECT_EQ(t.fuse(t.op("tanh", {t.relu6(t.conv)})),
                  "tanh(fused_conv2d(x, w, b) {min_value=0, max_value=6})");
    }
    {
        Layer t;
        EXPECT_EQ(t.fuse(t.op("add", {t.op("add", {t.conv, t.r}), t.r})), "add(fused_conv2d(x, w, b, r), r)");
    }
    {
        Layer t;  // before the residual and after it
        EXPECT_EQ(t.fuse(t.op("relu", {t.op("add", {t.op("relu", {t.conv}), t.r})})),
                  "relu(fused_conv2d(x, w, b, r) {activation=\"relu\"})");
    }
}

TEST(FuseConvolutionEpilogue, LeavesWhatBroadcasts) {
    Layer t;
    EXPECT_EQ(t.fuse(t.op("add", {t.conv, t.constant("c", {2, 1, 1})})), "add(conv2d(x, w, b), c)");
    Layer larger;
    EXPECT_EQ(larger.fuse(larger.op("add", {larger.conv, larger.constant("c", {2, 2, 4, 5})})),
              "add(conv2d(x, w, b), c)");
}

TEST(FuseConvolutionEpilogue, LeavesIntermediatesThatAreReadElsewhere) {
    {
        Layer t;
        const ValueId sum = t.op("add", {t.conv, t.r});
        t.output("sum", sum);
        EXPECT_EQ(t.fuse(t.op("relu", {sum})), "relu(fused_conv2d(x, w, b, r))");
    }
    {
        Layer t;
        EXPECT_EQ(t.fuse(t.op("add", {t.conv, t.op("relu", {t.conv})})),
                  "add(conv2d(x, w, b), relu(conv2d(x, w, b)))");
    }
    {
        Layer t;
        EXPECT_EQ(t.fuse(t.op("add", {t.conv, t.conv})), "add(conv2d(x, w, b), conv2d(x, w, b))");
    }
}

TEST(FuseConvolutionEpilogue, GivesASumOfTwoConvolutionsToOneOfThem) {
    Layer t;
    const ValueId other = t.op("conv2d", {t.x, t.constant("v", {2, 3, 1, 1}, 9)});
    EXPECT_EQ(t.fuse(t.op("relu", {t.op("add", {other, t.conv})})),
              "fused_conv2d(x, w, b, conv2d(x, v)) {activation=\"relu\", residual_first=true}");
}

TEST(FuseConvolutionEpilogue, KeepsTheConvolutionsOwnAttributes) {
    TinyGraph t;
    using List = std::vector<std::int64_t>;
    const NamedAttrs window{
        {"padding", List{1, 1, 0, 2}}, {"strides", List{2, 1}}, {"groups", std::int64_t{3}}};
    t.output(
        "y",
        t.op("relu", {t.op("conv2d", {t.input("x", {2, 3, 5, 5}), t.constant("w", {6, 1, 3, 3})}, window)}));
    Graph graph = t.finish();
    const Graph before = graph;
    run_pass("fuse_convolution_epilogue", graph);
    EXPECT_EQ(formula(graph, "y"),
              "fused_conv2d(x, w) {padding=[1, 1, 0, 2], strides=[2, 1], groups=3, activation=\"relu\"}");
    expect_same_results(before, graph, kTolerance);
}

TEST(FuseConvolutionEpilogue, JoinsWithChannelsLastToo) {
    TinyGraph t;
    const ValueId conv = t.op("conv2d", {t.input("x", {1, 4, 4, 3}), t.constant("w", {2, 3, 1, 1})},
                              {{"input_layout", std::string("nhwc")}});
    t.output("y", t.op("relu", {t.op("add", {conv, t.input("r", {1, 4, 4, 2})})}));
    Graph graph = t.finish();
    const Graph before = graph;
    run_pass("fuse_convolution_epilogue", graph);
    EXPECT_EQ(formula(graph, "y"),
              "fused_conv2d(x, w, _, r) {input_layout=\"nhwc\", activation=\"relu\", residual_first=true}");
    expect_same_results(before, graph, kTolerance);
}

TEST(FuseConvolutionEpilogue, NeedsAConvolutionThatOurKernelComputes) {
    TinyGraph t;
    const ValueId x = t.input("x", {1, 3, 4, 4});
    const auto relu_of = [&](const std::string& name, ValueId image, ValueId filter, NamedAttrs attrs = {}) {
        t.output(name, t.op("relu", {t.op("conv2d", {image, filter}, attrs)}));
    };
    relu_of("variable", x, t.input("filter", {2, 3, 1, 1}));
    relu_of("half", t.input("h", {1, 1, 2, 2}, DType::f16),
            t.constant("one", DType::f16, {1, 1, 1, 1}, std::vector<std::uint16_t>{0x3c00}));
    Graph graph = t.finish();
    EXPECT_EQ(run_pass("fuse_convolution_epilogue", graph).at("convolutions"), 0);
    EXPECT_EQ(graph.nodes.size(), 4U);
}

TEST(FuseConvolutionEpilogue, DoesNotReadAStateAfterItsWrite) {
    TinyGraph t;
    const ValueId state = t.state("s", {1, 3, 4, 5});
    const ValueId conv = t.op("conv2d", {state, t.constant("w", {2, 3, 1, 1})});
    const ValueId written = t.op("assign", {state, t.input("x", {1, 3, 4, 5})});
    t.output("y", t.op("relu", {conv}));
    t.output("z", written);
    Graph graph = t.finish();
    const Graph before = graph;
    EXPECT_EQ(run_pass("fuse_convolution_epilogue", graph).at("convolutions"), 0);
    EXPECT_EQ(formula(graph, "y"), "relu(conv2d(s, w))");
    expect_same_results(before, graph, kTolerance);
}

TEST(FuseConvolutionEpilogue, WorksOnSymbolicShapes) {
    TinyGraph t;
    const ValueId x = t.input("x", {Dim::symbolic("n"), 3, 4, 4});
    t.output("y", t.op("relu", {t.op("conv2d", {x, t.constant("w", {2, 3, 1, 1})})}));
    Graph graph = t.finish();
    run_pass("fuse_convolution_epilogue", graph);
    EXPECT_EQ(formula(graph, "y"), "fused_conv2d(x, w) {activation=\"relu\"}");
}

}  // namespace
}  // namespace headrace::testing
