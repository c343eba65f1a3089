#include "passes/interpret.h"
#include "passes/tiny_graph.h"

namespace headrace {
namespace {

using namespace testing;

struct Quantized {
    DType type = DType::i8;
    Shape scales{2, 3};
    float scale = 0.125f;
    std::vector<int> zero_points = {};
    int low = -128, high = 127;
};

std::vector<std::byte> pack(DType type, const std::vector<int>& values) {
    std::vector<std::byte> bytes(bytes_of(type, static_cast<std::int64_t>(values.size())));
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (bits_of(type) == 8)
            bytes[i] = static_cast<std::byte>(values[i]);
        else
            bytes[i / 2] |= static_cast<std::byte>((values[i] & 15) << (i % 2 * 4));
    }
    return bytes;
}

/// x[5, 64] times a matrix [64, 3] of small integers with a scale for each block.
struct Linear : TinyGraph {
    ValueId matrix(const Quantized& q, Shape shape = {64, 3}) {
        std::mt19937 random(1);
        std::vector<int> whole(static_cast<std::size_t>(TensorType{q.type, shape}.elements()));
        for (int& v : whole) v = std::uniform_int_distribution<int>(q.low, q.high)(random);
        whole.front() = q.low;  // whatever this library's distribution draws
        std::vector<float> scales(static_cast<std::size_t>(TensorType{DType::f32, q.scales}.elements()));
        for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = q.scale * static_cast<float>(i + 1);
        std::vector<ValueId> operands{constant("q", q.type, shape, pack(q.type, whole)),
                                      constant("s", DType::f32, q.scales, scales)};
        if (!q.zero_points.empty())
            operands.push_back(constant("z", q.type, q.scales, pack(q.type, q.zero_points)));
        return op("dequantize_linear", operands);
    }
};

void expect_kept(Graph graph, const std::string& type, double tolerance = 0) {
    const Graph before = graph;
    const Counts counts = run_pass("fold_dequantize_into_matmul", graph);
    EXPECT_EQ(counts.at("matrices"), 1);
    EXPECT_EQ(formula(graph, "y"), "fused_matmul(x, q) {transpose_b=true}");
    for (const Value& v : graph.values)
        if (v.name == "q") {
            EXPECT_EQ(v.type.str(), type);
        }
    expect_same_results(before, graph, tolerance);
}

void expect_left(Graph graph) {
    const std::string before = print(graph);
    EXPECT_EQ(run_pass("fold_dequantize_into_matmul", graph).at("matrices"), 0);
    EXPECT_EQ(print(graph), before);
}

Graph product(const Quantized& q) {
    Linear g;
    g.output("y", g.op("matmul", {g.input("x", {5, 64}), g.matrix(q)}));
    return g.finish();
}

TEST(KeepBlockWeights, EightBitsBecomeQ80) {
    expect_kept(product({}), "f32[3, 64] as q8_0");
    expect_kept(product({.scales = {1, 3}}), "f32[3, 64] as q8_0");
    expect_kept(product({.scales = {3}}), "f32[3, 64] as q8_0");
    expect_kept(product({.scales = {}}), "f32[3, 64] as q8_0");
    expect_kept(product({.type = DType::u8, .scales = {1, 1}, .zero_points = {128}, .low = 0, .high = 255}),
                "f32[3, 64] as q8_0");
}

TEST(KeepBlockWeights, LargeMatricesBecomeBlocksInPartsOnSeveralThreads) {
    constexpr std::int64_t kInner = 2176, kColumns = 4096;  // parts of 1,024 lines, the last one smaller
    for (const bool transposed : {false, true}) {
        Linear g;
        const Shape shape = transposed ? Shape{kColumns, kInner} : Shape{kInner, kColumns};
        const ValueId w = g.matrix({.scales = {}}, shape);
        g.output("y", g.op("gemm", {g.input("x", {1, kInner}), w}, {{"b_transpose", transposed}}));
        Graph graph = g.finish();
        const std::vector<std::byte> whole(graph.values[0].constant->bytes.begin(),
                                           graph.values[0].constant->bytes.end());
        EXPECT_EQ(run_pass("fold_dequantize_into_matmul", graph, {.threads = 3}).at("matrices"), 1);
        const Value& made = graph.value(graph.nodes[0].inputs[1]);
        ASSERT_EQ(made.type.str(), "f32[4096, 2176] as q8_0");
        for (std::int64_t n = 0; n < kColumns; ++n)
            for (std::int64_t k = 0; k < kInner; ++k)
                ASSERT_EQ(
                    made.constant->bytes[static_cast<std::size_t>((n * kInner + k) / 32 * 34 + 2 + k % 32)],
                    whole[static_cast<std::size_t>(transposed ? n * kInner + k : k * kColumns + n)])
                    << n << " " << k;
    }
}

TEST(KeepBlockWeights, ReadsColumnsOfBytesBeyondTheLastEightOfThem) {
    for (const Quantized& q :
         {Quantized{.scales = {}},
          Quantized{.type = DType::u8, .scales = {}, .zero_points = {128}, .low = 0, .high = 255}}) {
        Linear g;
        g.output("y", g.op("matmul", {g.input("x", {5, 64}), g.matrix(q, {64, 19})}));
        expect_kept(g.finish(), "f32[19, 64] as q8_0");
    }
}

TEST(KeepBlockWeights, GraphsOfTheSameConstantsShareTheBlocks) {
    Graph one = product({});
    Graph other = one;
    run_pass("fold_dequantize_into_matmul", one);
    run_pass("fold_dequantize_into_matmul", other);
    const auto blocks_of = [](const Graph& graph) {
        return graph.value(graph.nodes[0].inputs[1]).constant->bytes.data();
    };
    EXPECT_EQ(blocks_of(one), blocks_of(other));
}

TEST(KeepBlockWeights, FourBitsBecomeQ40OrWithOtherZeroPointsQ41) {
    expect_kept(product({.type = DType::i4, .low = -8, .high = 7}), "f32[3, 64] as q4_0");
    expect_kept(product({.type = DType::u4, .scales = {1, 1}, .zero_points = {8}, .low = 0, .high = 15}),
                "f32[3, 64] as q4_0");
    expect_kept(
        product({.type = DType::u4, .scales = {1, 3}, .zero_points = {3, 0, 8}, .low = 0, .high = 15}),
        "f32[3, 64] as q4_1");
    expect_kept(product({.type = DType::i4, .scales = {1, 1}, .zero_points = {-5}, .low = -8, .high = 7}),
                "f32[3, 64] as q4_1");
}

TEST(KeepBlockWeights, ReadsTransposedMatricesAndTransposedProducts) {
    Linear transposed;
    const ValueId w = transposed.matrix({.scales = {3, 2}}, {3, 64});
    transposed.output(
        "y", transposed.op("matmul", {transposed.input("x", {5, 64}), transposed.op("transpose", {w})}));
    expect_kept(transposed.finish(), "f32[3, 64] as q8_0");
    Linear gemm;
    const ValueId v = gemm.matrix({.scales = {3, 2}}, {3, 64});
    gemm.output("y", gemm.op("gemm", {gemm.input("x", {5, 64}), v}, {{"b_transpose", true}}));
    expect_kept(gemm.finish(), "f32[3, 64] as q8_0");
}

TEST(KeepBlockWeights, MultipliesColumnsByScalesThatBlocksCannotSayExactly) {
    for (const bool has_bias : {false, true})
        for (const Quantized& q : std::vector<Quantized>{
                 {.scales = {1, 3}, .scale = 0.1f},  // needs more than 11 bits
                 {.scales = {3}, .scale = 1e6f},     // beyond f16
                 {.scales = {}, .scale = 0.3f},
                 {.type = DType::i4, .scales = {1, 3}, .scale = 0.1f, .low = -8, .high = 7}}) {
            Linear g;
            std::vector<ValueId> operands{g.input("x", {5, 64}), g.matrix(q)};
            if (has_bias) operands.push_back(g.constant("b", {3}));
            g.output("y", g.op(has_bias ? "gemm" : "matmul", operands));
            Graph graph = g.finish();
            const Graph before = graph;
            EXPECT_EQ(run_pass("fold_dequantize_into_matmul", graph).at("matrices"), 1);
            const std::string scaled = "mul(fused_matmul(x, q) {transpose_b=true}, constant)";
            EXPECT_EQ(formula(graph, "y"), has_bias ? "add(" + scaled + ", b)" : scaled);
            expect_same_results(before, graph, 1e-5);
        }
}

TEST(KeepBlockWeights, KeepsScalesInF32WhereTheCpuRunsTheGraph) {
    expect_kept(product({.scale = 0.1f}), "f32[3, 64] as q8_0_f32");
    expect_kept(product({.type = DType::i4, .scale = 0.1f, .low = -8, .high = 7}), "f32[3, 64] as q4_0_f32");
    expect_kept(
        product({.type = DType::u4, .scale = 0.1f, .zero_points = {3, 0, 8, 15, 1, 7}, .low = 0, .high = 15}),
        "f32[3, 64] as q4_1_f32", 1e-5);
    PassContext context;
    context.runs_on_cpu = false;
    Graph graph = product({.scale = 0.1f});
    EXPECT_EQ(run_pass("fold_dequantize_into_matmul", graph, context).at("matrices_expanded"), 1);
}

TEST(KeepBlockWeights, KeepsBlocksOf16WhereTheCpuRunsTheGraph) {
    const std::vector<int> nibbles{3, 0, 8, 15, 1, 7, 9, 2, 14, 4, 6, 11};
    for (const float scale : {0.125f, 0.1f}) {
        expect_kept(product({.scales = {4, 3}, .scale = scale}), "f32[3, 64] as q8_16_f32");
        expect_kept(product({.type = DType::i4, .scales = {4, 3}, .scale = scale, .low = -8, .high = 7}),
                    "f32[3, 64] as q4_16_f32");
        expect_kept(product({.type = DType::u4,
                             .scales = {4, 3},
                             .scale = scale,
                             .zero_points = nibbles,
                             .low = 0,
                             .high = 15}),
                    "f32[3, 64] as q4_16_f32");
    }
    expect_kept(product({.type = DType::u8,
                         .scales = {4, 3},
                         .zero_points = {128, 127, 126, 128, 120, 140, 128, 128, 130, 128, 128, 128},
                         .low = 20,
                         .high = 240}),
                "f32[3, 64] as q8_16_f32");
    PassContext context;
    context.runs_on_cpu = false;
    Graph graph = product({.scales = {4, 3}});
    EXPECT_EQ(run_pass("fold_dequantize_into_matmul", graph, context).at("matrices_expanded"), 1);
}

TEST(KeepBlockWeights, ExpandsWhatBlocksCannotSay) {
    const std::vector<int> ones(12, 1);
    for (const Quantized& q : std::vector<Quantized>{{.scales = {8, 3}},  // blocks of 8
                                                                          // -128 - 1 needs 9 bits
                                                     {.scales = {1, 1}, .zero_points = {1}},
                                                     {.scales = {4, 3}, .zero_points = ones}}) {
        Graph graph = product(q);
        const Graph before = graph;
        const Counts counts = run_pass("fold_dequantize_into_matmul", graph);
        EXPECT_EQ(counts.at("matrices"), 0);
        EXPECT_EQ(counts.at("matrices_expanded"), 1);
        EXPECT_EQ(formula(graph, "y"), "fused_matmul(x, constant)");
        expect_same_results(before, graph, 1e-5);
    }
    Linear transposed;
    const ValueId w = transposed.matrix({.scales = {3, 8}}, {3, 64});
    transposed.output(
        "y", transposed.op("matmul", {transposed.input("x", {5, 64}), transposed.op("transpose", {w})}));
    Graph graph = transposed.finish();
    run_pass("fold_dequantize_into_matmul", graph);
    EXPECT_EQ(formula(graph, "y"), "fused_matmul(x, constant) {transpose_b=true}");
}

TEST(KeepBlockWeights, LeavesWhatIsTooLargeToExpandAndOtherIntegers) {
    Graph graph = product({.scales = {8, 3}});
    const std::string before = print(graph);
    PassContext context;
    context.fold.grown_bytes = 64 * 3 * 4 - 1;
    run_pass("fold_dequantize_into_matmul", graph, context);
    EXPECT_EQ(print(graph), before);
    expect_left(product({.type = DType::i32}));
}

TEST(KeepBlockWeights, LeavesAMatrixThatIsNotConstantOrIsReadElsewhere) {
    Linear g;
    const ValueId scale = g.input("s", {1, 1});
    const ValueId q = g.constant("q", DType::i8, {64, 3}, std::vector<std::int8_t>(64 * 3, 5));
    g.output("y", g.op("matmul", {g.input("x", {5, 64}), g.op("dequantize_linear", {q, scale})}));
    expect_left(g.finish());
    Linear shared;
    const ValueId w = shared.matrix({});
    shared.output("y", shared.op("matmul", {shared.input("x", {5, 64}), w}));
    shared.output("w", w);
    const Graph before = shared.finish();
    Graph graph = before;
    EXPECT_EQ(run_pass("fold_dequantize_into_matmul", graph).at("matrices"), 1);
    EXPECT_EQ(formula(graph, "w"), "dequantize_linear(q, s)");
    expect_same_results(before, graph);
}

}  // namespace
}  // namespace headrace
