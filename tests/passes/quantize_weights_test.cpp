#include <cmath>
#include <limits>
#include <vector>

#include "passes/interpret.h"
#include "passes/rewrite.h"
#include "passes/tiny_graph.h"

namespace headrace {
namespace {

using namespace testing;

/// Two layers over x[4, 64], of 64 · 512 and 512 · 48 weights, and one too small to be worth it.
Graph layers() {
    TinyGraph g;
    ValueId v = g.op("matmul", {g.input("x", {4, 64}), g.constant("w1", {64, 512})});
    v = g.op("gemm", {v, g.constant("w2", {48, 512}), g.constant("b2", {48})}, {{"b_transpose", true}});
    g.output("y", g.op("matmul", {g.op("relu", {v}), g.constant("w3", {48, 32})}));
    return g.finish();
}

PassContext wanting(BlockFormat format) { return {.weights = format}; }

const Value& weights(const Graph& graph, const std::string& name) {
    for (const Value& v : graph.values)
        if (v.name == name) return v;
    throw std::runtime_error("no " + name);
}

TEST(QuantizeWeights, StoresLargeMatricesInBlocksAlongTheInnerExtent) {
    Graph graph = layers();
    const Counts counts = run_pass("quantize_weights", graph, wanting(BlockFormat::q8_0));
    EXPECT_EQ(counts.at("matrices"), 2);
    EXPECT_EQ(counts.at("bytes_before"), 4 * (64 * 512 + 512 * 48));
    EXPECT_EQ(counts.at("bytes_after"), (64 * 512 + 512 * 48) / 32 * 34);
    EXPECT_EQ(weights(graph, "w1").type.str(), "f32[512, 64] as q8_0");
    EXPECT_EQ(weights(graph, "w2").type.str(), "f32[48, 512] as q8_0");
    EXPECT_EQ(weights(graph, "w3").type.str(), "f32[48, 32]");
    EXPECT_EQ(formula(graph, "y"),
              "matmul(relu(fused_matmul(fused_matmul(x, w1) {transpose_b=true}, w2, b2) "
              "{transpose_b=true}), w3)");
}

TEST(QuantizeWeights, ChangesResultsOnlyWithinTheRounding) {
    for (const auto& [format, tolerance] : {std::pair(BlockFormat::q8_0, 0.02), {BlockFormat::q4_0, 0.3}}) {
        Graph graph = layers();
        const auto expected = Interpreter(graph).run();
        run_pass("quantize_weights", graph, wanting(format));
        const auto actual = Interpreter(graph).run();
        const auto* a = reinterpret_cast<const float*>(actual.at("y").second.data());
        const auto* e = reinterpret_cast<const float*>(expected.at("y").second.data());
        double error = 0, norm = 0;
        for (int i = 0; i < 4 * 32; ++i) error += (a[i] - e[i]) * (a[i] - e[i]), norm += e[i] * e[i];
        EXPECT_LT(std::sqrt(error / norm), tolerance) << name_of(format);
        EXPECT_GT(error, 0) << name_of(format);
    }
}

TEST(QuantizeWeights, LetsProductsRoundTheOtherOperandWhereThatIsAllowed) {
    Graph graph = layers();
    PassContext context = wanting(BlockFormat::q4_0);
    context.round_activations = true;
    run_pass("quantize_weights", graph, context);
    for (const Node& node : graph.nodes)
        if (node.op->name == "fused_matmul") {
            EXPECT_TRUE(attr<bool>(node, "round_a")) << print(graph, node);
        }
    EXPECT_EQ(formula(graph, "y"),
              "matmul(relu(fused_matmul(fused_matmul(x, w1) {transpose_b=true, round_a=true}, w2, b2) "
              "{transpose_b=true, round_a=true}), w3)");
}

TEST(QuantizeWeights, DoesNothingUnlessAsked) {
    Graph graph = layers();
    const std::string before = print(graph);
    EXPECT_EQ(run_pass("quantize_weights", graph).at("matrices"), 0);
    EXPECT_EQ(print(graph), before);
}

TEST(QuantizeWeights, StoresMatricesOfHalfFloatsOnceTheyAreMultipliedInF32) {
    TinyGraph g;
    const std::vector<Half> w(256 * 256, Half(0.5f));
    g.output("y", g.op("matmul",
                       {g.input("x", {4, 256}, DType::f16), g.constant("w", DType::f16, {256, 256}, w)}));
    Graph graph = g.finish();
    const auto expected = Interpreter(graph).run();
    run_pass("promote_half_floats", graph);
    EXPECT_EQ(run_pass("quantize_weights", graph, wanting(BlockFormat::q8_0)).at("matrices"), 1);
    EXPECT_EQ(weights(graph, "w").type.str(), "f32[256, 256] as q8_0");
    const auto actual = Interpreter(graph).run();
    const auto* a = reinterpret_cast<const Half*>(actual.at("y").second.data());
    const auto* e = reinterpret_cast<const Half*>(expected.at("y").second.data());
    for (int i = 0; i < 4 * 256; ++i)
        ASSERT_NEAR(static_cast<float>(a[i]), static_cast<float>(e[i]), 0.02) << i;
}

TEST(QuantizeWeights, LeavesMatricesThatAreMultipliedInHalfFloats) {
    TinyGraph g;
    const std::vector<Half> w(256 * 256, Half(0.5f));
    g.output("y", g.op("matmul",
                       {g.input("x", {4, 256}, DType::f16), g.constant("w", DType::f16, {256, 256}, w)}));
    Graph graph = g.finish();
    EXPECT_EQ(run_pass("quantize_weights", graph, wanting(BlockFormat::q8_0)).at("matrices"), 0);
    EXPECT_TRUE(verify(graph).ok());
}

TEST(QuantizeWeights, LeavesInnerExtentsThatAreNoMultipleOf32) {
    TinyGraph g;
    g.output("y", g.op("matmul", {g.input("x", {4, 100}), g.constant("w", {100, 512})}));
    Graph graph = g.finish();
    EXPECT_EQ(run_pass("quantize_weights", graph, wanting(BlockFormat::q8_0)).at("matrices"), 0);
}

TEST(QuantizeWeights, LeavesMatricesThatScalesInF16CannotSay) {
    constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(),
                    kInfinity = std::numeric_limits<float>::infinity();
    const auto matrices = [](float most, float one, BlockFormat format) {
        std::vector<float> w(256 * 256, most);
        w[1000] = one;
        TinyGraph g;
        g.output("y", g.op("matmul", {g.input("x", {4, 256}), g.constant("w", DType::f32, {256, 256}, w)}));
        Graph graph = g.finish();
        return run_pass("quantize_weights", graph, wanting(format)).at("matrices");
    };
    for (const BlockFormat format : {BlockFormat::q8_0, BlockFormat::q4_0}) {
        EXPECT_EQ(matrices(1e-6f, -1e-6f, format), 0) << name_of(format);
        for (const float one : {kNaN, kInfinity, -kInfinity, 1e8f, -1e30f})
            EXPECT_EQ(matrices(1, one, format), 0) << name_of(format) << " " << one;
        for (const float one : {0.0f, 1e-9f, -0.01f, 5e5f})
            EXPECT_EQ(matrices(0.01f, one, format), 1) << name_of(format) << " " << one;
        EXPECT_EQ(matrices(0, 0, format), 1) << name_of(format);
    }
    EXPECT_EQ(matrices(1, 5e6f, BlockFormat::q8_0), 1);
    EXPECT_EQ(matrices(1, 5e6f, BlockFormat::q4_0), 0);
}

TEST(QuantizeWeights, ConvertsAMatrixThatTwoProductsReadOnce) {
    TinyGraph g;
    const ValueId w = g.constant("w", {256, 256});
    const ValueId once = g.op("matmul", {g.input("x", {4, 256}), w});
    g.output("y", g.op("matmul", {once, w}));
    Graph graph = g.finish();
    EXPECT_EQ(run_pass("quantize_weights", graph, wanting(BlockFormat::q4_0)).at("matrices"), 1);
    EXPECT_EQ(graph.values.size(), 4u);  // the f32 matrix is gone
}

TEST(QuantizeWeights, KeepsTheMatrixForReadersThatNeedPlainElements) {
    TinyGraph g;
    const ValueId w = g.constant("w", {256, 256});
    g.output("y", g.op("matmul", {g.input("x", {4, 256}), w}));
    g.output("z", g.op("relu", {w}));
    Graph graph = g.finish();
    EXPECT_EQ(run_pass("quantize_weights", graph, wanting(BlockFormat::q8_0)).at("matrices"), 1);
    EXPECT_EQ(formula(graph, "z"), "relu(w)");
}

TEST(QuantizeWeights, StoresATableOfEmbeddingsThatIsTheLastLayerOnce) {
    TinyGraph g;
    const ValueId table = g.constant("table", {512, 256});
    const ValueId rows = g.op("gather", {table, g.input("i", {4}, DType::i32)});
    g.output("y", g.op("fused_matmul", {rows, table}, {{"transpose_b", true}}));
    Graph graph = g.finish();
    run_pass("quantize_weights", graph, wanting(BlockFormat::q8_0));
    EXPECT_EQ(graph.constant_bytes(), 512u * 256 / 32 * 34);
    EXPECT_EQ(formula(graph, "y"), "fused_matmul(gather(table, i), table) {transpose_b=true}");
}

}  // namespace
}  // namespace headrace
