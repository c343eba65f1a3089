#include <gtest/gtest.h>

#include "passes/interpret.h"
#include "passes/tiny_graph.h"

namespace headrace::testing {
namespace {

using List = std::vector<std::int64_t>;

const NamedAttrs kSame{{"padding", List{1, 1, 1, 1}}};
const NamedAttrs kToLast{{"permutation", List{0, 2, 3, 1}}}, kToFirst{{"permutation", List{0, 3, 1, 2}}};

/// Images whose channels are first, and layers that kernels compute faster with channels last.
struct Images : TinyGraph {
    ValueId x = input("x", {2, 16, 8, 7});

    ValueId conv(ValueId image, const std::string& filter = "w", NamedAttrs attrs = kSame) {
        return op("conv2d", {image, constant(filter, {16, 16, 3, 3})}, attrs);
    }
    /// Between two convolutions, whose order nodes between them take.
    void between(ValueId (*make)(Images&, ValueId)) {
        const ValueId made = make(*this, conv(x, "before"));
        const auto channels = builder.type(made).shape[1].size();
        output("y", op("conv2d", {made, constant("after", {8, channels, 3, 3})}, kSame));
    }

    Graph choose() {
        Graph graph = finish();
        const Graph before = graph;
        counts = run_pass("choose_layouts", graph);
        expect_same_results(before, graph, kTolerance);
        return graph;
    }
    /// The formula of y after the pass.
    std::string choose_y() { return formula(choose(), "y"); }
    Counts counts;
};

std::size_t count_nodes(const Graph& graph, std::string_view op) {
    std::size_t count = 0;
    for (const Node& node : graph.nodes) count += node.op->name == op;
    return count;
}

TEST(ChooseLayouts, TransposesOnceBeforeAndAfterARegionOfImages) {
    Images t;
    t.output("y", t.conv(t.op("relu", {t.conv(t.op("tanh", {t.conv(t.x)}))})));
    const Graph graph = t.choose();
    EXPECT_EQ(count_nodes(graph, "transpose"), 2U);
    EXPECT_EQ(graph.nodes.front().op->name, "transpose");
    EXPECT_EQ(graph.nodes.back().op->name, "transpose");
    EXPECT_EQ(t.counts.at("nodes_turned"), 5);
    EXPECT_EQ(t.counts.at("transpositions_inserted"), 2);
}

TEST(ChooseLayouts, LeavesALayerThatWouldGainLessThanItsTranspositionsCost) {
    Images t;
    t.output("y", t.op("relu", {t.conv(t.x)}));
    EXPECT_EQ(t.choose_y(), "relu(conv2d(x, w) {padding=[1, 1, 1, 1]})");
}

TEST(ChooseLayouts, LetsAStemReadChannelsFirstAndGiveThemLast) {
    Images t;
    const ValueId pixels = t.input("pixels", {1, 3, 32, 32});
    const NamedAttrs strides{{"padding", List{1, 1, 1, 1}}, {"strides", List{2, 2}}};
    const ValueId stem = t.op("relu", {t.op("conv2d", {pixels, t.constant("s", {16, 3, 3, 3})}, strides)});
    t.output("y", t.op("reduce_mean", {t.conv(stem)}, {{"axes", List{2, 3}}}));
    const Graph graph = t.choose();
    EXPECT_EQ(count_nodes(graph, "transpose"), 0U);
    EXPECT_EQ(formula(graph, graph.node(0).outputs[0]),
              "fused_conv2d(pixels, s) {padding=[1, 1, 1, 1], strides=[2, 2], output_layout=\"nhwc\"}");

    Graph again = graph;
    EXPECT_EQ(run_pass("choose_layouts", again).at("nodes_turned"), 0);
    EXPECT_EQ(print(again), print(graph));
}

TEST(ChooseLayouts, TurnsALayerAloneWhereTransformedFiltersSaveMore) {
    TinyGraph t;
    const ValueId x = t.input("x", {1, 64, 16, 16});
    t.output("y", t.op("conv2d", {x, t.constant("w", {64, 64, 3, 3})}, kSame));
    Graph graph = t.finish();
    const Graph before = graph;
    EXPECT_EQ(run_pass("choose_layouts", graph).at("nodes_turned"), 1);
    expect_same_results(before, graph, kTolerance);
}

TEST(ChooseLayouts, TurnsTransposedConvolutionsWithTheLayersAroundThem) {
    for (const auto& [layout, filter] :
         {std::pair{"iohw", Shape{16, 24, 4, 4}}, {"hwoi", {4, 4, 24, 16}}, {"ohwi", {24, 4, 4, 16}}}) {
        Images t;
        const ValueId up = t.op(
            "conv_transpose2d", {t.conv(t.x), t.constant("up", filter)},
            {{"strides", List{2, 2}}, {"padding", List{1, 1, 1, 1}}, {"filter_layout", std::string(layout)}});
        t.output("y", t.op("conv2d", {t.op("relu", {up}), t.constant("after", {8, 24, 1, 1})}));
        const Graph graph = t.choose();
        EXPECT_EQ(count_nodes(graph, "transpose"), 2U) << layout;
        EXPECT_EQ(t.counts.at("nodes_turned"), 4) << layout;
    }
}

TEST(ChooseLayouts, TurnsATransposedConvolutionAloneUnlessItsProductsHaveFewColumns) {
    for (const bool few : {false, true}) {
        TinyGraph t;
        const ValueId x = t.input("x", {1, 128, 7, 7});
        t.output("y", t.op("conv_transpose2d", {x, t.constant("w", {128, few ? 3 : 64, 4, 4})},
                           {{"strides", List{2, 2}}}));
        Graph graph = t.finish();
        const Graph before = graph;
        EXPECT_EQ(run_pass("choose_layouts", graph).at("nodes_turned"), few ? 0 : 1);
        expect_same_results(before, graph, kTolerance);
    }
}

TEST(ChooseLayouts, TurnsNormalizationsByChannelBetweenConvolutions) {
    for (const bool instance : {false, true}) {
        Images t;
        const auto vector = [&](const char* name) { return t.constant(name, {16}); };
        const ValueId before = t.conv(t.x, "before");
        const ValueId normal = instance
                                   ? t.op("instance_normalization", {before, vector("scale"), vector("bias")})
                                   : t.op("batch_normalization",
                                          {t.op("relu", {before}), vector("mean"), vector("variance"),
                                           vector("scale"), vector("bias")},
                                          {{"epsilon", 10.0}});
        t.output("y", t.op("conv2d", {t.op("tanh", {normal}), t.constant("after", {8, 16, 1, 1})}));
        const Graph graph = t.choose();
        EXPECT_EQ(count_nodes(graph, "transpose"), 2U);
        EXPECT_EQ(t.counts.at("nodes_turned"), instance ? 4 : 5);
    }
}

TEST(ChooseLayouts, LetsOneTranspositionServeAllReaders) {
    Images t;
    const ValueId stem = t.conv(t.conv(t.x, "a"), "b");
    t.output("y", t.op("add", {t.conv(stem, "c"), stem}));
    t.output("z", stem);
    t.output("flat", t.op("reshape", {stem}, {{"new_shape", Shape{2, 16 * 8 * 7}}}));
    const Graph graph = t.choose();
    EXPECT_EQ(count_nodes(graph, "transpose"), 3U);  // of x, of y, and of stem for z and flat
}

TEST(ChooseLayouts, CancelsTranspositionsThatTheGraphHas) {
    Images t;
    const ValueId pixels = t.input("pixels", {1, 8, 7, 16});
    const ValueId image = t.op("transpose", {pixels}, kToFirst);
    t.output("y", t.op("transpose", {t.op("relu", {t.conv(image)})}, kToLast));
    EXPECT_EQ(t.choose_y(), "relu(conv2d(pixels, w) {padding=[1, 1, 1, 1], input_layout=\"nhwc\"})");
    EXPECT_EQ(t.counts.at("transpositions_removed"), 2);
}

TEST(ChooseLayouts, BringsWhatBroadcastsIntoTheOrderOfTheImages) {
    Images t;
    const ValueId scale = t.constant("scale", {16, 1, 1}, 3), shift = t.constant("shift", {1, 16, 1, 1}, 4);
    const ValueId rows = t.input("rows", {8, 1});
    ValueId y = t.op("mul", {t.conv(t.x, "a"), scale});
    y = t.op("add", {t.op("add", {shift, y}), t.constant("one", {}, 5)});
    t.output("y", t.conv(t.op("add", {y, rows}), "b"));
    const Graph graph = t.choose();
    EXPECT_EQ(t.counts.at("nodes_turned"), 6);
    // Those of the constants are done already: x, rows and the result are left.
    EXPECT_EQ(count_nodes(graph, "transpose"), 3U);
}

TEST(ChooseLayouts, TurnsTheAxesOfWhatLiesBetween) {
    const auto expect_two_transpositions = [](ValueId (*make)(Images&, ValueId)) {
        Images t;
        t.between(make);
        EXPECT_EQ(count_nodes(t.choose(), "transpose"), 2U);
        EXPECT_EQ(t.counts.at("nodes_turned"), 3);
    };
    expect_two_transpositions([](Images& t, ValueId x) {
        return t.op("concat", {x, x, t.constant("k", {2, 3, 8, 7})}, {{"axis", std::int64_t{1}}});
    });
    expect_two_transpositions([](Images& t, ValueId x) {
        return t.op("concat", {x, x}, {{"axis", std::int64_t{-1}}});
    });
    expect_two_transpositions([](Images& t, ValueId x) {
        return t.op("pad", {x},
                    {{"beginning_padding", List{0, 1, 2, 3}}, {"ending_padding", List{0, 3, 1, 0}}});
    });
    expect_two_transpositions([](Images& t, ValueId x) {
        return t.op(
            "slice", {x},
            {{"starts", List{0, 4, 1, 2}}, {"sizes", Shape{2, 10, 6, 3}}, {"strides", List{1, 2, 3, 1}}});
    });
    expect_two_transpositions([](Images& t, ValueId x) {
        return t.op("resample2d", {x}, {{"mode", std::string("linear")}, {"sizes", Shape{12, 9}}});
    });
    expect_two_transpositions([](Images& t, ValueId x) {
        return t.op("average_pool2d", {x}, {{"window_dimensions", List{2, 3}}, {"strides", List{1, 2}}});
    });
    expect_two_transpositions([](Images& t, ValueId x) {
        return t.many("split", {x}, {{"splits", List{4, 12}}, {"axis", std::int64_t{1}}})[1];
    });
    expect_two_transpositions([](Images& t, ValueId x) {
        return t.op("reduce_mean", {x}, {{"axes", List{2}}, {"keep_dimensions", true}});
    });
}

TEST(ChooseLayouts, LeavesTablesOfBytesAsTheyAre) {
    Images t;
    t.between([](Images& t, ValueId x) {
        const ValueId scale = t.constant("", DType::f32, {}, std::vector<float>{0.02f});
        const ValueId zero = t.constant("", DType::u8, {}, std::vector<std::uint8_t>{128});
        std::vector<std::uint8_t> squares(256);
        for (std::size_t i = 0; i < squares.size(); ++i) squares[i] = static_cast<std::uint8_t>(i * i >> 8);
        const ValueId bytes = t.op("quantize_linear", {x, scale, zero});
        const ValueId looked_up = t.op("byte_table", {bytes, t.constant("", DType::u8, {256}, squares)});
        return t.op("dequantize_linear", {looked_up, scale, zero});
    });
    EXPECT_EQ(count_nodes(t.choose(), "transpose"), 2U);
    EXPECT_EQ(t.counts.at("nodes_turned"), 5);
}

TEST(ChooseLayouts, TakesMeansOverPixelsAsTheyLie) {
    Images t;
    t.output("y", t.op("reduce_mean", {t.conv(t.conv(t.x))}, {{"axes", List{2, 3}}}));
    const Graph graph = t.choose();
    EXPECT_EQ(count_nodes(graph, "transpose"), 1U);
    EXPECT_NE(formula(graph, "y").find("axes=[1, 2]"), std::string::npos);
}

TEST(ChooseLayouts, KeepsReductionsWhoseOtherDimensionsWouldChangePlaces) {
    Images t;
    t.output("y", t.op("reduce_sum", {t.conv(t.conv(t.x))}, {{"axes", List{2}}}));
    EXPECT_EQ(t.choose_y().substr(0, 26), "reduce_sum(transpose(conv2");
}

TEST(ChooseLayouts, BringsChannelsFirstWhereNoKernelTakesThemLast) {
    Images t;
    const ValueId pixels = t.input("pixels", {1, 4, 5, 2});
    const NamedAttrs nhwc{{"input_layout", std::string("nhwc")}};
    // Three output channels are fewer than a panel is worth.
    t.output("y", t.op("conv2d", {pixels, t.constant("w", {3, 2, 3, 3})}, nhwc));
    EXPECT_EQ(
        t.choose_y(),
        "transpose(conv2d(transpose(pixels) {permutation=[0, 3, 1, 2]}, w)) {permutation=[0, 2, 3, 1]}");
}

TEST(ChooseLayouts, LeavesNodesThatReadConstantImages) {
    Images t;
    t.output("y", t.op("conv2d", {t.constant("image", {1, 16, 8, 7}), t.input("w", {16, 16, 1, 1})}));
    const ValueId a = t.conv(t.conv(t.x, "a"), "b");
    t.output("z", t.op("max", {a, t.constant("k", {2, 16, 8, 7})}));
    const Graph graph = t.choose();
    EXPECT_EQ(formula(graph, "y"), "conv2d(image, w)");
}

TEST(ChooseLayouts, LeavesWhatIsNoImage) {
    Images t;
    const ValueId heads = t.input("heads", {2, 4, 8, 8});
    t.output("y", t.op("softmax", {t.op("relu", {heads})}, {{"axis", std::int64_t{-1}}}));
    t.output("z", t.op("transpose", {heads}, kToLast));
    EXPECT_EQ(t.choose_y(), "softmax(relu(heads)) {axis=-1}");
    EXPECT_EQ(t.counts, Counts{});
}

TEST(ChooseLayouts, ReadsStatesBeforeTheyAreWritten) {
    Images t;
    const ValueId state = t.state("s", {2, 16, 8, 7});
    const ValueId y = t.conv(t.conv(state, "a"), "b");
    t.output("y", y);
    t.output("s", t.op("assign", {state, y}));
    const Graph graph = t.choose();
    EXPECT_EQ(t.counts.at("nodes_turned"), 2);
}

TEST(ChooseLayouts, WorksOnSymbolicExtents) {
    TinyGraph t;
    const ValueId x = t.input("x", {Dim::symbolic("n"), 16, Dim::symbolic("h", 4), Dim::symbolic("w", 4)});
    const auto conv = [&](ValueId image, const std::string& name) {
        return t.op("conv2d", {image, t.constant(name, {16, 16, 3, 3})}, kSame);
    };
    t.output("y", conv(t.op("relu", {conv(x, "a")}), "b"));
    Graph graph = t.finish();
    EXPECT_EQ(run_pass("choose_layouts", graph).at("nodes_turned"), 3);
    EXPECT_EQ(str(graph.value(graph.outputs[0].second).type.shape), "[n, 16, h, w]");
}

TEST(ChooseLayouts, DoesNothingWithoutOurKernels) {
    Images t;
    t.output("y", t.conv(t.conv(t.x)));
    Graph graph = t.finish();
    PassContext context;
    context.uses_packed_kernels = false;
    EXPECT_EQ(run_pass("choose_layouts", graph, context), Counts{});
    EXPECT_EQ(count_nodes(graph, "transpose"), 0U);
}

}  // namespace
}  // namespace headrace::testing
