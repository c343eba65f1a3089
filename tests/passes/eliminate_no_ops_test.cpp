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
    EXPECT_EQ(run_pass(eliminate_no_ops, graph), (Counts{{"nodes_removed", 4}}));
    EXPECT_EQ(formula(graph, "y"), "tanh(relu(x))");
    expect_same_results(before, graph);
}

TEST(EliminateNoOps, KeepsWhatChangesShape) {
    TinyGraph t;
    const ValueId x = t.input("x", {1, 3});
    t.output("reshaped", t.op("reshape", {x}, {{"new_shape", Shape{3, 1}}}));
    t.output("transposed", t.op("transpose", {x}));
    Graph graph = t.finish();
    EXPECT_EQ(run_pass(eliminate_no_ops, graph).at("nodes_removed"), 0);
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
    EXPECT_EQ(run_pass(eliminate_no_ops, graph).at("nodes_removed"), 1);
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
    EXPECT_EQ(run_pass(eliminate_no_ops, graph).at("nodes_removed"), 2);
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
    EXPECT_EQ(run_pass(eliminate_no_ops, graph).at("nodes_removed"), 0);
    expect_same_results(before, graph);
}

TEST(EliminateNoOps, KnowsSymbolicShapes) {
    TinyGraph t;
    const Dim seq = Dim::symbolic("seq");
    const ValueId x = t.input("x", {1, seq});
    t.output("y", t.op("relu", {t.op("reshape", {x}, {{"new_shape", Shape{1, seq}}})}));
    Graph graph = t.finish();
    EXPECT_EQ(run_pass(eliminate_no_ops, graph).at("nodes_removed"), 1);
    EXPECT_EQ(formula(graph, "y"), "relu(x)");
}

}  // namespace
}  // namespace headrace::testing
