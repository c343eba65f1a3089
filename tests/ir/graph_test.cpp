#include "ir/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/print.h"
#include "ir/sample_ops.h"
#include "ir/verify.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Shapes = std::vector<std::vector<std::int64_t>>;

/// sum(x, y) of f32[batch, seq].
Graph symbolic_graph() {
    GraphBuilder b;
    const TensorType type{DType::f32, {Dim::symbolic("batch", 1, 8), Dim::symbolic("seq")}};
    const ValueId x = b.input("x", type).value(), y = b.input("y", type).value();
    const NamedAttrs attrs{{"shape", type.shape}};
    const ValueId z = b.op(sample_op("everything"), {x}, attrs).value()[0];
    (void)b.mark_output("sum", b.op(sample_op("sum"), {z, y}).value()[0]);
    return b.finish().value();
}

TEST(Graph, CompactRemovesNodesAndTheValuesThatOnlyTheyUsed) {
    GraphBuilder b;
    const TensorType type{DType::f32, {2}};
    const ValueId x = b.input("x", type).value();
    const ValueId w = b.constant(type, counting_bytes(8), "w").value();
    ASSERT_TRUE(b.input("unused", type).ok());
    const ValueId dead = b.op(sample_op("sum"), {x, w}).value()[0];
    ASSERT_TRUE(b.op(sample_op("twice"), {dead}).ok());
    const auto twice = b.op(sample_op("twice"), {x}).value();
    ASSERT_TRUE(b.mark_output("y", twice[1]).ok());
    Graph graph = b.finish().value();
    graph.compact({false, false, true});
    EXPECT_TRUE(verify(graph).ok());
    EXPECT_EQ(print(graph),
              "input    %0 \"x\" : f32[2]\n"
              "input    %1 \"unused\" : f32[2]\n"
              "%2, %3 = twice(%0 \"x\") : f32[2], f32[2]\n"
              "output   \"y\" = %3\n");
}

TEST(Graph, SpecializeReplacesSymbolsInTypesAndAttributes) {
    const Graph graph = symbolic_graph();
    EXPECT_FALSE(graph.is_concrete());
    const auto concrete = specialize(graph, {{"batch", 2}, {"seq", 7}});
    ASSERT_TRUE(concrete.ok()) << concrete.error().message;
    EXPECT_TRUE(concrete.value().is_concrete());
    EXPECT_TRUE(verify(concrete.value()).ok());
    EXPECT_EQ(concrete.value().value(concrete.value().outputs[0].second).type.str(), "f32[2, 7]");
    const auto* attrs = static_cast<const EverythingOp::Attrs*>(concrete.value().nodes[0].attrs.get());
    EXPECT_EQ(attrs->shape, (Shape{2, 7}));
    EXPECT_FALSE(graph.is_concrete()) << "the original stays";
}

TEST(Graph, SpecializeComputesProductsOfSymbolsThatAttributesName) {
    GraphBuilder b;
    const Dim batch = Dim::symbolic("batch"), seq = Dim::symbolic("seq");
    const ValueId x = b.input("x", {DType::f32, {batch, seq}}).value();
    const NamedAttrs attrs{{"shape", Shape{product({seq, 8, batch})}}};
    (void)b.mark_output("y", b.op(sample_op("everything"), {x}, attrs).value()[0]);
    const auto concrete = specialize(b.finish().value(), {{"batch", 2}, {"seq", 7}});
    ASSERT_TRUE(concrete.ok()) << concrete.error().message;
    EXPECT_EQ(static_cast<const EverythingOp::Attrs*>(concrete.value().nodes[0].attrs.get())->shape,
              Shape{112});
}

TEST(Graph, SpecializeComputesExpressionsThatAttributesName) {
    GraphBuilder b;
    const ValueId x = b.input("x", {DType::f32, {Dim::symbolic("n"), 2}}).value();
    const NamedAttrs attrs{{"shape", Shape{Dim::symbolic("(n + 3)//2"), Dim::symbolic("1 + n")}}};
    (void)b.mark_output("y", b.op(sample_op("everything"), {x}, attrs).value()[0]);
    const auto concrete = specialize(b.finish().value(), {{"n", 6}});
    ASSERT_TRUE(concrete.ok()) << concrete.error().message;
    EXPECT_EQ(static_cast<const EverythingOp::Attrs*>(concrete.value().nodes[0].attrs.get())->shape,
              (Shape{4, 7}));
}

TEST(Graph, AnInputsExtentGivesTheOneNameThatItIsComputedFrom) {
    GraphBuilder b;
    const ValueId x = b.input("x", {DType::f32, {Dim::symbolic("2*n + 1", 1, 99)}}).value();
    const NamedAttrs attrs{{"shape", Shape{Dim::symbolic("n")}}};
    (void)b.mark_output("y", b.op(sample_op("everything"), {x}, attrs).value()[0]);
    const Graph graph = b.finish().value();
    EXPECT_THAT(bind_symbols(graph, Shapes{{9}}).value(),
                ElementsAre(std::pair("(2*n+1)", 9), std::pair("n", 4)));
    EXPECT_THAT(bind_symbols(graph, Shapes{{8}}).error().message,
                HasSubstr("input 'x': an extent of 8 is not (2*n+1) for any n"));
    EXPECT_TRUE(specialize(graph, bind_symbols(graph, Shapes{{9}}).value()).ok());
}

TEST(Graph, SpecializeNamesASymbolWithoutAValue) {
    EXPECT_THAT(specialize(symbolic_graph(), {{"batch", 2}}).error().message, HasSubstr("[2, seq]"));
}

TEST(Graph, BindsSymbolsFromInputShapes) {
    const auto bindings = bind_symbols(symbolic_graph(), Shapes{{2, 7}, {2, 7}});
    ASSERT_TRUE(bindings.ok());
    EXPECT_THAT(bindings.value(), ElementsAre(std::pair("batch", 2), std::pair("seq", 7)));
}

TEST(Graph, RefusesShapesThatContradictTheGraph) {
    const Graph graph = symbolic_graph();
    const auto refusal = [&](const Shapes& shapes) { return bind_symbols(graph, shapes).error().message; };
    EXPECT_THAT(refusal({{2, 7, 1}, {2, 7}}), HasSubstr("input 'x' has shape [2, 7, 1], the graph declares"));
    EXPECT_THAT(refusal({{9, 7}, {9, 7}}), HasSubstr("batch (dimension 0) is 9; at most 8 is possible"));
    EXPECT_THAT(refusal({{2, 7}, {3, 7}}),
                HasSubstr("input 'y': dimension 0 gives batch = 3, another input gave 2"));
    EXPECT_THAT(refusal({{2, 0}, {2, 0}}), HasSubstr("seq (dimension 1) is 0; at least 1 is needed"));
}

/// sum(x, y) of f32[n] and f32[m].
Graph open_graph() {
    GraphBuilder b;
    const ValueId x = b.input("x", {DType::f32, {Dim::symbolic("n")}}).value();
    const ValueId y = b.input("y", {DType::f32, {Dim::symbolic("m")}}).value();
    const ValueId z = b.op(sample_op("sum"), {x, y}, NamedAttrs{}, "both").value()[0];
    (void)b.mark_output("z", b.op(sample_op("sum"), {z, y}).value()[0]);
    return b.finish().value();
}

TEST(Graph, CarriesWhatItsNodesNeedOfSymbolsOnce) {
    const Graph graph = open_graph();
    ASSERT_EQ(graph.conditions.size(), 1U);
    EXPECT_EQ(graph.conditions[0].str(), "n = m");
    EXPECT_EQ(graph.conditions[0].where, "sum (both)");
    EXPECT_THAT(print(graph), HasSubstr("where    n = m   # sum (both)"));
    EXPECT_EQ(conditions_of(graph, {true, true}), graph.conditions);
    EXPECT_THAT(conditions_of(graph, {false, false}), ::testing::IsEmpty());
}

TEST(Graph, ChecksConditionsWhenShapesAreBound) {
    const Graph graph = open_graph();
    const auto specialized = specialize(graph, {{"n", 3}, {"m", 3}});
    ASSERT_TRUE(specialized.ok()) << specialized.error().message;
    EXPECT_EQ(
        specialize(graph, {{"n", 3}, {"m", 4}}).error().message,
        "sum (both): the extents n = 3 and m = 4 must be equal; give inputs of shapes that make them so");
}

TEST(Condition, SaysWhatItNeedsWithTheValuesThatExtentsTook) {
    using Kind = Condition::Kind;
    const Dim n = Dim::symbolic("n"), twice = product({n, 2});
    const SymbolBindings three{{"n", 3}};
    const auto error = [&](Kind kind, const Dim& left, const Dim& right) {
        const Status status = Condition{kind, left, right, "op"}.check(three);
        return status.ok() ? "" : status.error().message;
    };
    EXPECT_EQ(error(Kind::equal, twice, 6), "");
    EXPECT_THAT(error(Kind::equal, twice, 5), HasSubstr("op: the extents 2*n = 6 and 5 must be equal"));
    EXPECT_EQ(error(Kind::at_least, n, 3), "");
    EXPECT_THAT(error(Kind::at_least, n, twice), HasSubstr("the extent n = 3 must be at least 2*n = 6"));
    EXPECT_EQ(error(Kind::broadcast, n, 1), "");
    EXPECT_THAT(error(Kind::broadcast, n, 2), HasSubstr("n = 3 and 2 must be equal, or one of them 1"));
    EXPECT_THAT(error(Kind::expandable, n, 1), HasSubstr("the extent n = 3 must be 1, or 1"));
    EXPECT_EQ(error(Kind::equal, Dim::symbolic("m"), 5), "") << "nobody knows m yet";
}

TEST(Graph, CountsConstantBytes) { EXPECT_EQ(small_graph().constant_bytes(), 24U); }

TEST(Graph, ConstantMaskKnowsAbsentOperands) {
    GraphBuilder b;
    const TensorType type{DType::f32, {2}};
    const ValueId x = b.input("x", type).value();
    const ValueId w = b.constant(type, counting_bytes(8)).value();
    ASSERT_TRUE(b.op(sample_op("everything"), {x, kNoValue, w}).ok());
    EXPECT_THAT(b.graph().constant_mask(b.graph().nodes[0]), ElementsAre(false, false, true));
    EXPECT_EQ(b.graph().operand_types(b.graph().nodes[0])[1], nullptr);
}

}  // namespace
}  // namespace headrace::testing
