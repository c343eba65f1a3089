#include <gtest/gtest.h>

#include "passes/interpret.h"
#include "passes/tiny_graph.h"

namespace headrace::testing {
namespace {

/// x[2, 3] in bytes by its range, times w[3, 5], as dynamic quantisation spells it.
struct DynamicProduct : TinyGraph {
    ValueId x = input("x", {2, 3}), b = constant("b", {5}, 2), r = input("r", {2, 5});
    std::vector<ValueId> rounded = many("dynamic_quantize_linear", {x});
    ValueId w =
        constant("w", DType::i8, {3, 5},
                 std::vector<std::int8_t>{1, -2, 3, 40, -5, 60, 7, -8, 9, 127, -128, 11, 12, -13, 14});
    ValueId scales = constant("scales", {5}, 3);
    ValueId sums = op("matmul_integer", {rounded[0], w, rounded[2]}, {}, "dense");
    ValueId real = op("cast", {sums}, {{"data_type", DType::f32}});

    ValueId scaled() { return op("mul", {real, op("mul", {rounded[1], scales})}); }

    /// The formula of y after the pass, which must compute the same.
    std::string fuse(ValueId y) {
        output("y", y);
        Graph graph = finish();
        const Graph before = graph;
        counts = run_pass("fuse_integer_product_epilogue", graph);
        expect_same_results(before, graph, kTolerance);
        nodes = graph.nodes.size();
        return formula(graph, "y");
    }
    Counts counts;
    std::size_t nodes = 0;
};

const std::string kRows = "dynamic_quantize_linear(x)#0, w, dynamic_quantize_linear(x)#2, ";

TEST(FuseIntegerProductEpilogue, JoinsScalesBiasActivationAndResidual) {
    DynamicProduct t;
    const ValueId y = t.op("add", {t.op("gelu", {t.op("add", {t.scaled(), t.b})}), t.r});
    EXPECT_EQ(t.fuse(y), "dequantized_matmul(" + kRows +
                             "dynamic_quantize_linear(x)#1, scales, b, r) {activation=\"gelu\"}");
    EXPECT_EQ(t.counts, (Counts{{"products", 1}, {"biases", 1}, {"activations", 1}, {"residuals", 1}}));
    EXPECT_EQ(t.nodes, 2U);
}

TEST(FuseIntegerProductEpilogue, TakesAScaleOfOneOperandAlone) {
    {
        DynamicProduct t;
        EXPECT_EQ(t.fuse(t.op("mul", {t.real, t.rounded[1]})),
                  "dequantized_matmul(" + kRows + "dynamic_quantize_linear(x)#1, constant, _, _)");
    }
    {
        DynamicProduct t;
        EXPECT_EQ(t.fuse(t.op("mul", {t.scales, t.real})),
                  "dequantized_matmul(" + kRows + "constant, scales, _, _)");
    }
}

TEST(FuseIntegerProductEpilogue, LeavesSumsThatAreReadElsewhere) {
    DynamicProduct t;
    t.output("sums", t.sums);
    t.fuse(t.scaled());
    EXPECT_EQ(t.counts.at("products"), 0);
}

TEST(FuseIntegerProductEpilogue, LeavesScalesOfRows) {
    DynamicProduct t;
    t.fuse(t.op("mul", {t.real, t.constant("rows", {2, 1})}));
    EXPECT_EQ(t.counts.at("products"), 0);
}

}  // namespace
}  // namespace headrace::testing
