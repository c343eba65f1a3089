#include <algorithm>

#include "base/half.h"
#include "passes/interpret.h"
#include "passes/tiny_graph.h"

namespace headrace {
namespace {

using namespace testing;

std::vector<Half> half_floats(std::int64_t count) {
    std::vector<Half> values;
    for (std::int64_t i = 0; i < count; ++i)
        values.push_back(static_cast<Half>(static_cast<float>(i % 13) * 0.25f - 1.5f));
    return values;
}

struct HalfGraph : TinyGraph {
    ValueId half_input(const std::string& name, Shape shape) {
        return input(name, std::move(shape), DType::f16);
    }
    ValueId half_constant(const std::string& name, Shape shape) {
        const TensorType type{DType::f16, shape};
        return constant(name, DType::f16, std::move(shape), half_floats(type.elements()));
    }
};

TEST(PromoteHalfFloats, RoundsAtTheGraphsEndInsteadOfAfterEachNode) {
    HalfGraph g;
    g.output("y", g.op("tanh", {g.op("exp", {g.half_input("x", {3, 4})})}));
    Graph graph = g.finish();
    run_pass("promote_half_floats", graph);
    EXPECT_EQ(formula(graph, "y"), "cast(tanh(exp(cast(x) {data_type=f32}))) {data_type=f16}");
    EXPECT_EQ(graph.value(graph.outputs[0].second).type.str(), "f16[3, 4]");
}

TEST(PromoteHalfFloats, LeavesAMatrixInItsBytes) {
    HalfGraph g;
    g.output("y", g.op("matmul", {g.half_input("x", {3, 8}), g.half_constant("w", {8, 5})}));
    Graph graph = g.finish();
    EXPECT_EQ(run_pass("promote_half_floats", graph).at("products"), 1);
    EXPECT_EQ(formula(graph, "y"), "cast(fused_matmul(cast(x) {data_type=f32}, w)) {data_type=f16}");
}

TEST(PromoteHalfFloats, LeavesAMatrixInItsBytesThatIsConvertedToF32) {
    HalfGraph g;
    const ValueId w = g.op("cast", {g.half_constant("w", {8, 5})}, {{"data_type", DType::f32}});
    g.output("y", g.op("matmul", {g.input("x", {3, 8}), w}));
    g.output("z", g.op("gemm", {g.input("u", {3, 5}), w}, {{"b_transpose", true}}));
    Graph graph = g.finish();
    const Graph before = graph;
    EXPECT_EQ(run_pass("promote_half_floats", graph).at("products"), 2);
    EXPECT_EQ(formula(graph, "y"), "fused_matmul(x, w)");
    EXPECT_EQ(formula(graph, "z"), "fused_matmul(u, w) {transpose_b=true}");
    EXPECT_EQ(graph.nodes.size(), 2u);
    expect_same_results(before, graph, 1e-5);
}

TEST(PromoteHalfFloats, KeepsAMatrixInF32ForOthersThanProducts) {
    HalfGraph g;
    const ValueId w = g.op("cast", {g.half_constant("w", {8, 5})}, {{"data_type", DType::f32}});
    g.output("y", g.op("matmul", {g.input("x", {3, 8}), w}));
    g.output("z", g.op("exp", {w}));
    Graph graph = g.finish();
    EXPECT_EQ(run_pass("promote_half_floats", graph).at("products"), 1);
    EXPECT_EQ(formula(graph, "y"), "fused_matmul(x, w)");
    EXPECT_EQ(formula(graph, "z"), "exp(cast(w) {data_type=f32})");
}

TEST(PromoteHalfFloats, ReadsABiasOfOneRowAsAList) {
    HalfGraph g;
    g.output("y", g.op("gemm", {g.half_input("x", {3, 8}), g.half_constant("w", {8, 5}),
                                g.half_constant("c", {1, 5})}));
    Graph graph = g.finish();
    const Graph before = graph;
    EXPECT_EQ(run_pass("promote_half_floats", graph).at("products"), 1);
    EXPECT_EQ(formula(graph, "y"),
              "cast(fused_matmul(cast(x) {data_type=f32}, w, cast(c) {data_type=f32})) {data_type=f16}");
    expect_same_results(before, graph, 1e-2);
}

TEST(PromoteHalfFloats, LetsOperandsThatWereBf16BeRoundedToItAgain) {
    TinyGraph g;
    const std::vector<std::uint16_t> ones(8 * 5, 0x3f80);
    const ValueId w = g.constant("w", DType::bf16, {8, 5}, ones);
    g.output("y", g.op("matmul", {g.input("x", {3, 8}, DType::bf16), w}));
    g.output("z", g.op("fused_matmul", {g.input("wide", {3, 8}), w}));
    Graph graph = g.finish();
    run_pass("promote_half_floats", graph);
    EXPECT_EQ(formula(graph, "y"),
              "cast(fused_matmul(cast(x) {data_type=f32}, w) {round_a=true}) {data_type=bf16}");
    EXPECT_EQ(formula(graph, "z"), "fused_matmul(wide, w)");
}

TEST(PromoteHalfFloats, ConvertsAValueOnceForAllItsReaders) {
    HalfGraph g;
    const ValueId x = g.half_input("x", {4});
    g.output("y", g.op("add", {g.op("exp", {x}), g.op("mul", {x, x})}));
    Graph graph = g.finish();
    EXPECT_EQ(run_pass("promote_half_floats", graph).at("conversions"), 2);  // of x, and of y
}

TEST(PromoteHalfFloats, DropsConversionsToAndFromF32) {
    HalfGraph g;
    const ValueId wide = g.op("cast", {g.op("exp", {g.half_input("x", {4})})}, {{"data_type", DType::f32}});
    const ValueId half = g.op("cast", {g.op("tanh", {wide})}, {{"data_type", DType::f16}});
    g.output("y", g.op("relu", {half}));
    Graph graph = g.finish();
    EXPECT_EQ(run_pass("promote_half_floats", graph).at("conversions"), 2);
    EXPECT_EQ(formula(graph, "y"), "cast(relu(tanh(exp(cast(x) {data_type=f32})))) {data_type=f16}");
}

TEST(PromoteHalfFloats, RoundsWhatIsConvertedToAHalfAndBack) {
    HalfGraph g;
    const ValueId half = g.op("cast", {g.input("x", {4})}, {{"data_type", DType::f16}});
    g.output("y", g.op("relu", {g.op("cast", {half}, {{"data_type", DType::f32}})}));
    g.output("z", g.op("exp", {half}));
    Graph graph = g.finish();
    run_pass("promote_half_floats", graph);
    EXPECT_EQ(formula(graph, "y"), "relu(cast(cast(x) {data_type=f16}) {data_type=f32})");
    EXPECT_EQ(formula(graph, "z"), "cast(exp(x)) {data_type=f16}");
}

TEST(PromoteHalfFloats, RoundsWhatIsConvertedToAHalfAndOnWhateverItComesFromAndBecomes) {
    HalfGraph g;
    const auto cast = [&](ValueId x, DType to) { return g.op("cast", {x}, {{"data_type", to}}); };
    g.output("of_integers", cast(cast(g.input("i", {4}, DType::i32), DType::bf16), DType::f32));
    g.output("of_half", cast(cast(g.half_input("h", {4}), DType::bf16), DType::f32));
    g.output("to_integers", cast(cast(g.input("x", {4}), DType::f16), DType::i32));
    g.output("to_half", cast(cast(g.input("y", {4}), DType::f16), DType::bf16));
    const ValueId half = cast(g.input("j", {4}, DType::i32), DType::f16);
    g.output("in_between", g.op("exp", {half}));
    Graph graph = g.finish();
    run_pass("promote_half_floats", graph);
    EXPECT_EQ(formula(graph, "of_integers"), "cast(cast(i) {data_type=bf16}) {data_type=f32}");
    EXPECT_EQ(formula(graph, "of_half"), "cast(cast(h) {data_type=bf16}) {data_type=f32}");
    EXPECT_EQ(formula(graph, "to_integers"), "cast(cast(x) {data_type=f16}) {data_type=i32}");
    EXPECT_EQ(formula(graph, "to_half"), "cast(cast(y) {data_type=f16}) {data_type=bf16}");
    EXPECT_EQ(formula(graph, "in_between"), "cast(exp(cast(j) {data_type=f32})) {data_type=f16}");
}

TEST(PromoteHalfFloats, GivesAConversionThatIsAResultItsType) {
    HalfGraph g;
    const ValueId x = g.input("x", {4});
    g.output("half", g.op("cast", {x}, {{"data_type", DType::f16}}));
    g.output("wide", g.op("cast", {g.half_input("h", {4})}, {{"data_type", DType::f32}}));
    Graph graph = g.finish();
    run_pass("promote_half_floats", graph);
    EXPECT_EQ(formula(graph, "half"), "cast(x) {data_type=f16}");
    EXPECT_EQ(formula(graph, "wide"), "cast(h) {data_type=f32}");
}

TEST(PromoteHalfFloats, TakesRowsOfAnEmbeddingBeforeItConvertsThem) {
    HalfGraph g;
    const ValueId rows = g.op("gather", {g.half_constant("table", {10, 4}), g.input("ids", {2}, DType::i32)});
    g.output("y", g.op("exp", {rows}));
    Graph graph = g.finish();
    run_pass("promote_half_floats", graph);
    EXPECT_EQ(formula(graph, "y"), "cast(exp(cast(gather(table, ids)) {data_type=f32})) {data_type=f16}");
}

TEST(PromoteHalfFloats, MovesWhatItComputedInF32) {
    HalfGraph g;
    g.output("y", g.op("transpose", {g.op("exp", {g.half_input("x", {3, 4})})}));
    Graph graph = g.finish();
    run_pass("promote_half_floats", graph);
    EXPECT_EQ(formula(graph, "y"), "cast(transpose(exp(cast(x) {data_type=f32}))) {data_type=f16}");
}

TEST(PromoteHalfFloats, WidensAConstantThatIsPutAmongResults) {
    HalfGraph g;
    const ValueId scores = g.op("exp", {g.half_input("x", {4})});
    const ValueId chosen =
        g.op("where", {g.input("mask", {4}, DType::u8), g.half_constant("least", {1}), scores});
    g.output("y", g.op("tanh", {chosen}));
    Graph graph = g.finish();
    run_pass("promote_half_floats", graph);
    EXPECT_EQ(formula(graph, "y"),
              "cast(tanh(where(mask, cast(least) {data_type=f32}, exp(cast(x) {data_type=f32})))) "
              "{data_type=f16}");
}

TEST(PromoteHalfFloats, AddsToACacheInItsType) {
    HalfGraph g;
    const ValueId longer =
        g.op("concat", {g.half_input("past", {3, 4}), g.op("exp", {g.half_input("x", {1, 4})})},
             {{"axis", std::int64_t{0}}});
    g.output("cache", longer);
    g.output("y", g.op("tanh", {longer}));
    Graph graph = g.finish();
    run_pass("promote_half_floats", graph);
    const std::string cache = "concat(past, cast(exp(cast(x) {data_type=f32})) {data_type=f16}) {axis=0}";
    EXPECT_EQ(formula(graph, "cache"), cache);
    EXPECT_EQ(formula(graph, "y"), "cast(tanh(cast(" + cache + ") {data_type=f32})) {data_type=f16}");
}

TEST(PromoteHalfFloats, KeepsStatesInTheirType) {
    HalfGraph g;
    const ValueId state = must(g.builder.state("cache", {DType::f16, {4}}));
    g.output("old", g.op("relu", {state}));
    g.op("assign", {state, g.op("exp", {g.half_input("x", {4})})});
    Graph graph = g.finish();
    run_pass("promote_half_floats", graph);
    EXPECT_EQ(graph.value(graph.states[0]).type.str(), "f16[4]");
    const auto assign = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                     [](const Node& node) { return node.op->name == "assign"; });
    ASSERT_NE(assign, graph.nodes.end());
    EXPECT_EQ(formula(graph, assign->outputs[0]),
              "assign(cache, cast(exp(cast(x) {data_type=f32})) {data_type=f16})");
}

TEST(PromoteHalfFloats, StaysCloseToRoundingAfterEachNode) {
    HalfGraph g;
    ValueId v = g.op("matmul", {g.half_input("x", {5, 16}), g.half_constant("w", {16, 24})});
    v = g.op("gelu", {g.op("add", {v, g.half_constant("b", {24})})});
    v = g.op("layer_normalization", {v, g.half_constant("s", {24})},
             {{"axes", std::vector<std::int64_t>{1}}});
    g.output("y", g.op("softmax", {v}, {{"axis", std::int64_t{1}}}));
    Graph graph = g.finish();
    const auto expected = Interpreter(graph).run();
    run_pass("promote_half_floats", graph);
    const auto actual = Interpreter(graph).run();
    ASSERT_EQ(actual.at("y").first.str(), "f16[5, 24]");
    const auto* e = reinterpret_cast<const Half*>(expected.at("y").second.data());
    const auto* a = reinterpret_cast<const Half*>(actual.at("y").second.data());
    for (int i = 0; i < 5 * 24; ++i) EXPECT_NEAR(float(a[i]), float(e[i]), 2e-3) << i;
}

TEST(PromoteHalfFloats, LeavesGraphsOfOtherDevicesAndOtherTypes) {
    HalfGraph g;
    g.output("y", g.op("exp", {g.half_input("x", {4})}));
    Graph graph = g.finish();
    PassContext elsewhere;
    elsewhere.runs_on_cpu = false;
    run_pass("promote_half_floats", graph, elsewhere);
    EXPECT_EQ(formula(graph, "y"), "exp(x)");

    TinyGraph other;
    other.output("y", other.op("exp", {other.input("x", {4}, DType::f64)}));
    Graph doubles = other.finish();
    run_pass("promote_half_floats", doubles);
    EXPECT_EQ(formula(doubles, "y"), "exp(x)");
}

}  // namespace
}  // namespace headrace
