#include <gtest/gtest.h>

#include "passes/interpret.h"
#include "passes/tiny_graph.h"

namespace headrace::testing {
namespace {

struct Normalized : TinyGraph {
    ValueId mean = constant("mean", {4}, 1), scale = constant("scale", {4}, 2),
            shift = constant("shift", {4}, 3);
    ValueId variance = constant<float>("variance", DType::f32, {4}, {0.5f, 1, 2, 4});

    ValueId norm(ValueId x, NamedAttrs attrs = {}, bool plain = false) {
        return plain ? op("batch_normalization", {x, mean, variance}, attrs)
                     : op("batch_normalization", {x, mean, variance, scale, shift}, attrs);
    }
    /// The formula of y after the pass, which must compute the same.
    std::string folded(ValueId y) {
        output("y", y);
        Graph graph = finish();
        const Graph before = graph;
        run_pass("fold_batch_normalization", graph);
        expect_same_results(before, graph, 1e-5);
        return formula(graph, "y");
    }
};

TEST(FoldBatchNormalization, MovesFactorsIntoTheFilterAndOffsetsIntoTheBias) {
    for (const bool has_bias : {false, true})
        for (const bool plain : {false, true}) {
            Normalized t;
            std::vector<ValueId> operands{t.input("x", {2, 3, 5, 5}), t.constant("w", {4, 3, 3, 3}, 5)};
            if (has_bias) operands.push_back(t.constant("b", {4}, 6));
            EXPECT_EQ(t.folded(t.norm(t.op("conv2d", operands), {{"epsilon", 0.01}}, plain)),
                      "conv2d(x, constant, constant)");
        }
}

TEST(FoldBatchNormalization, KnowsWhereTheChannelsOfEachLayoutAre) {
    const std::vector<std::pair<std::string, Shape>> filters{
        {"oihw", {4, 3, 1, 2}}, {"hwio", {1, 2, 3, 4}}, {"ohwi", {4, 1, 2, 3}}, {"ihwo", {3, 1, 2, 4}}};
    for (const auto& [layout, shape] : filters)
        for (const bool last : {false, true}) {
            Normalized t;
            const ValueId x = t.input("x", last ? Shape{1, 4, 5, 3} : Shape{1, 3, 4, 5});
            const ValueId conv =
                t.op("conv2d", {x, t.constant("w", shape, 5)},
                     {{"filter_layout", layout}, {"input_layout", std::string(last ? "nhwc" : "nchw")}});
            const std::string text = t.folded(t.norm(conv, {{"axis", std::int64_t{last ? -1 : 1}}}));
            EXPECT_EQ(text.substr(0, 29), "conv2d(x, constant, constant)") << layout;
        }
}

TEST(FoldBatchNormalization, LeavesLargeFiltersWhereTheyAreBesideTheirFactors) {
    for (const std::string layout : {"oihw", "hwio"})
        for (const bool on_cpu : {true, false}) {
            Normalized t;
            const Shape shape = layout == "oihw" ? Shape{4, 4096, 1, 1} : Shape{1, 1, 4096, 4};
            const ValueId filter = t.constant("w", shape, 5);
            const ValueId conv =
                t.op("conv2d", {t.input("x", {1, 4096, 1, 2}), filter}, {{"filter_layout", layout}});
            t.output("y", t.norm(t.norm(conv)));
            Graph graph = t.finish();
            const Graph before = graph;
            run_pass("fold_batch_normalization", graph, {.runs_on_cpu = on_cpu});
            EXPECT_EQ(formula(graph, "y").substr(0, 29), "conv2d(x, constant, constant)") << layout;
            expect_same_results(before, graph, 1e-4);
            const Constant& made = *graph.value(graph.nodes[0].inputs[1]).constant;
            EXPECT_EQ(made.bytes.data() == before.value(filter).constant->bytes.data(), on_cpu);
            EXPECT_EQ(made.factors != nullptr, on_cpu);
        }
}

TEST(FoldBatchNormalization, FoldsDepthwiseConvolutions) {
    Normalized t;
    const ValueId conv = t.op("conv2d", {t.input("x", {1, 4, 5, 5}), t.constant("w", {4, 1, 3, 3}, 5)},
                              {{"groups", std::int64_t{4}}});
    EXPECT_EQ(t.folded(t.norm(conv)), "conv2d(x, constant, constant) {groups=4}");
}

TEST(FoldBatchNormalization, LeavesWhatIsReadElsewhereOrNotConstantOrAlongAnotherAxis) {
    {
        Normalized t;
        const ValueId conv = t.op("conv2d", {t.input("x", {1, 3, 5, 5}), t.constant("w", {4, 3, 3, 3}, 5)});
        t.output("conv", conv);
        EXPECT_EQ(t.folded(t.norm(conv)).substr(0, 19), "batch_normalization");
    }
    {
        Normalized t;
        const ValueId conv = t.op("conv2d", {t.input("x", {1, 3, 5, 5}), t.input("w", {4, 3, 3, 3})});
        EXPECT_EQ(t.folded(t.norm(conv)).substr(0, 19), "batch_normalization");
    }
    {
        Normalized t;
        const ValueId conv = t.op("conv2d", {t.input("x", {1, 3, 4, 4}), t.constant("w", {4, 3, 1, 1}, 5)});
        EXPECT_EQ(t.folded(t.norm(conv, {{"axis", std::int64_t{2}}})).substr(0, 19), "batch_normalization");
    }
}

}  // namespace
}  // namespace headrace::testing
