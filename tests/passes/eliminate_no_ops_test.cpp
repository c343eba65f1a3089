#include <gtest/gtest.h>

#include "ops/op.h"
#include "passes/interpret.h"
#include "passes/tiny_graph.h"

namespace headrace::testing {
namespace {

TEST(EliminateNoOps, RemovesChainsOfThem) {
    TinyGraph t;
    ValueId x = t.op("relu", {t.input("x", {2, 3})});
    x = t.op("identity", {x});
    x = t.op("reshape", {x}, {{"new_shape", Shape{2, 3}}});
    x = t.op("transpose", {x}, {{"permutation", std::vector<std::int64_t>{0, 1}}});
    x = t.op("expand", {x}, {{"new_shape", Shape{2, 3}}});
    t.output("y", t.op("tanh", {x}));
    Graph graph = t.finish();
    const Graph before = graph;
    EXPECT_EQ(run_pass("eliminate_no_ops", graph), (Counts{{"chains_merged", 0}, {"nodes_removed", 4}}));
    EXPECT_EQ(formula(graph, "y"), "tanh(relu(x))");
    expect_same_results(before, graph);
}

TEST(EliminateNoOps, KeepsWhatChangesShape) {
    TinyGraph t;
    const ValueId x = t.input("x", {1, 3});
    t.output("reshaped", t.op("reshape", {x}, {{"new_shape", Shape{3, 1}}}));
    t.output("transposed", t.op("transpose", {x}));
    Graph graph = t.finish();
    EXPECT_EQ(run_pass("eliminate_no_ops", graph).at("nodes_removed"), 0);
}

TEST(EliminateNoOps, RemovesProductsWithOneAndQuotientsByIt) {
    TinyGraph t;
    const ValueId x = t.input("x", {2, 3}), one = t.constant<float>("one", DType::f32, {}, {1});
    const ValueId row = t.constant<float>("row", DType::f32, {1, 1, 1}, {1});
    t.output("product", t.op("relu", {t.op("mul", {one, t.op("mul", {x, one})})}));
    t.output("quotient", t.op("tanh", {t.op("div", {x, one})}));
    t.output("inverse", t.op("div", {one, x}));
    t.output("wider", t.op("mul", {x, row}));
    Graph graph = t.finish();
    const Graph before = graph;
    EXPECT_EQ(run_pass("eliminate_no_ops", graph).at("nodes_removed"), 3);
    EXPECT_EQ(formula(graph, "product"), "relu(x)");
    EXPECT_EQ(formula(graph, "quotient"), "tanh(x)");
    expect_same_results(before, graph);
}

/// Claims to equal its operand, whatever its type becomes.
struct RetypeOp {
    struct Attrs {
        Shape shape;
        static void fields(auto&& f) { f("shape", &Attrs::shape, "", kRequired); }
    };
    static constexpr std::string_view name = "retype", summary = "the same bytes as another type";
    static constexpr std::array operands{OperandRule{.name = "x", .dtypes = kAny}};
    static Result<std::vector<TensorType>> infer(const Operands& in, const Attrs& a) {
        return std::vector{TensorType{in[0].dtype, a.shape}};
    }
    static std::optional<int> same_as(const Operands&, const Attrs&) { return 0; }
    static void reference(const TensorArgs&, const Attrs&) {}
};

TEST(EliminateNoOps, KeepsAnOpThatSaysItEqualsAnOperandOfAnotherType) {
    static const OpDef retype = make_def<RetypeOp>();
    TinyGraph t;
    const ValueId x = t.input("x", {2, 3});
    for (const Shape& shape : {Shape{2, 3}, Shape{3, 2}})
        t.output(str(shape), must(t.builder.op(retype, {x}, NamedAttrs{{"shape", shape}}))[0]);
    Graph graph = t.finish();
    EXPECT_EQ(run_pass("eliminate_no_ops", graph).at("nodes_removed"), 1);
    EXPECT_EQ(formula(graph, "[2, 3]"), "x");
    EXPECT_EQ(formula(graph, "[3, 2]"), "retype(x) {shape=[3, 2]}");
}

TEST(EliminateNoOps, MayLeaveAnInputAsAnOutput) {
    TinyGraph t;
    const ValueId x = t.input("x", {3});
    t.output("y", t.op("identity", {x}));
    t.output("z", t.op("identity", {x}));
    t.output("x again", x);
    Graph graph = t.finish();
    const Graph before = graph;
    EXPECT_EQ(run_pass("eliminate_no_ops", graph).at("nodes_removed"), 2);
    EXPECT_EQ(formula(graph, "y"), "x");
    EXPECT_EQ(formula(graph, "z"), "x");
    expect_same_results(before, graph);
}

TEST(EliminateNoOps, KeepsACopyOfAStateThatIsReadAfterTheWrite) {
    TinyGraph t;
    const ValueId x = t.input("x", {3});
    const ValueId state = t.state("total", {3});
    const ValueId old = t.op("identity", {state});
    const ValueId current = t.op("accumulate", {state, x});
    t.output("difference", t.op("sub", {current, old}));
    Graph graph = t.finish();
    const Graph before = graph;
    EXPECT_EQ(run_pass("eliminate_no_ops", graph).at("nodes_removed"), 0);
    expect_same_results(before, graph);
}

TEST(EliminateNoOps, KnowsSymbolicShapes) {
    TinyGraph t;
    const Dim seq = Dim::symbolic("seq");
    const ValueId x = t.input("x", {1, seq});
    t.output("y", t.op("relu", {t.op("reshape", {x}, {{"new_shape", Shape{1, seq}}})}));
    Graph graph = t.finish();
    EXPECT_EQ(run_pass("eliminate_no_ops", graph).at("nodes_removed"), 1);
    EXPECT_EQ(formula(graph, "y"), "relu(x)");
}

TEST(EliminateNoOps, MergesChainsOfReshapesAndOfTransposes) {
    TinyGraph t;
    const ValueId x = t.input("x", {2, 3});
    t.output("same", t.op("reshape", {t.op("reshape", {x}, {{"new_shape", Shape{3, 2}}})},
                          {{"new_shape", Shape{2, 3}}}));
    t.output("flat", t.op("reshape", {t.op("reshape", {x}, {{"new_shape", Shape{3, 2}}})},
                          {{"new_shape", Shape{6}}}));
    t.output("back", t.op("transpose", {t.op("transpose", {x})}));
    using Axes = std::vector<std::int64_t>;
    const ValueId y = t.input("y", {2, 3, 4});
    const ValueId turned = t.op("transpose", {y}, {{"permutation", Axes{1, 2, 0}}});
    t.output("turned", t.op("transpose", {turned}, {{"permutation", Axes{0, 2, 1}}}));
    Graph graph = t.finish();
    const Graph before = graph;
    const Counts counts = run_pass("eliminate_no_ops", graph);
    EXPECT_EQ(counts.at("chains_merged"), 4);
    EXPECT_EQ(formula(graph, "same"), "x");
    EXPECT_EQ(formula(graph, "back"), "x");
    EXPECT_EQ(formula(graph, "flat"), "reshape(x) {new_shape=[6]}");
    EXPECT_EQ(formula(graph, "turned"), "transpose(y) {permutation=[1, 0, 2]}");
    EXPECT_EQ(graph.nodes.size(), 2u);
    expect_same_results(before, graph);
}

TEST(EliminateNoOps, MergesTransposesWhoseDimensionsAreCountedFromTheEnd) {
    TinyGraph t;
    using Axes = std::vector<std::int64_t>;
    const ValueId y = t.input("y", {2, 3, 4});
    const ValueId turned = t.op("transpose", {y}, {{"permutation", Axes{-2, -1, -3}}});
    t.output("turned", t.op("transpose", {turned}, {{"permutation", Axes{0, -1, -2}}}));
    Graph graph = t.finish();
    const Graph before = graph;
    EXPECT_EQ(run_pass("eliminate_no_ops", graph).at("chains_merged"), 1);
    EXPECT_EQ(formula(graph, "turned"), "transpose(y) {permutation=[1, 0, 2]}");
    expect_same_results(before, graph);
}

TEST(EliminateNoOps, KeepsTheFirstOfAChainForItsOtherReaders) {
    TinyGraph t;
    const ValueId first = t.op("reshape", {t.input("x", {2, 3})}, {{"new_shape", Shape{3, 2}}});
    const ValueId alias = t.op("identity", {first});
    t.output("a", t.op("reshape", {alias}, {{"new_shape", Shape{6}}}));
    t.output("b", t.op("relu", {alias}));
    t.output("c", first);
    Graph graph = t.finish();
    const Graph before = graph;
    run_pass("eliminate_no_ops", graph);
    EXPECT_EQ(formula(graph, "a"), "reshape(x) {new_shape=[6]}");
    EXPECT_EQ(formula(graph, "b"), "relu(reshape(x) {new_shape=[3, 2]})");
    expect_same_results(before, graph);
}

TEST(EliminateNoOps, KeepsWhatAnOutputInTheMiddleOfTwoChainsIsMadeOf) {
    using Axes = std::vector<std::int64_t>;
    TinyGraph g;
    const auto reshape = [&](ValueId id, Axes shape) {
        return g.op("reshape", {id}, {{"new_shape", shape}});
    };
    const auto turn = [&](ValueId id) { return g.op("transpose", {id}, {{"permutation", Axes{0, 2, 1}}}); };
    const ValueId apart = reshape(turn(g.input("x", {2, 3, 4})), {24});
    g.output("y", apart);
    g.output("z", reshape(turn(reshape(apart, {2, 4, 3})), {6, 4}));
    Graph graph = g.finish();
    run_pass("eliminate_no_ops", graph);
    EXPECT_EQ(formula(graph, "y"), "reshape(transpose(x) {permutation=[0, 2, 1]}) {new_shape=[24]}");
    EXPECT_EQ(formula(graph, "z"), "reshape(x) {new_shape=[6, 4]}");
}

TEST(EliminateNoOps, DoesNotMergeWithAViewOfAStateThatIsWrittenBetween) {
    TinyGraph t;
    const ValueId total = t.state("total", {4});
    const ValueId old = t.op("reshape", {total}, {{"new_shape", Shape{2, 2}}});
    t.op("accumulate", {total, t.input("x", {4})});
    t.output("y", t.op("reshape", {old}, {{"new_shape", Shape{1, 4}}}));
    Graph graph = t.finish();
    const Graph before = graph;
    EXPECT_EQ(run_pass("eliminate_no_ops", graph).at("chains_merged"), 0);
    expect_same_results(before, graph);
}

}  // namespace
}  // namespace headrace::testing
