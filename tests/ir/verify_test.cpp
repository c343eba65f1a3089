#include "ir/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/sample_ops.h"

namespace headrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// The message with which verify refuses the small graph after `damage`.
template <class Damage>
std::string refusal(Damage&& damage) {
    Graph graph = small_graph();
    damage(graph);
    const Status status = verify(graph);
    return status.ok() ? "accepted" : status.error().message;
}

TEST(Verify, AcceptsWhatTheBuilderMakes) {
    EXPECT_TRUE(verify(small_graph()).ok());
    const Status status = verify(rich_graph());
    EXPECT_TRUE(status.ok()) << status.error().message;
}

TEST(Verify, AcceptsAGraphThatOnlyWritesAState) {
    EXPECT_EQ(refusal([](Graph& g) { g.outputs.clear(); }), "accepted");
}

TEST(Verify, RefusesAGraphWithoutEffect) {
    Graph graph = small_graph();
    graph.outputs.clear();
    graph.compact({true, false});
    EXPECT_EQ(verify(graph).error().message, "the graph has no output and writes no state");
}

TEST(Verify, NamesNodeAndOperandOutOfRange) {
    EXPECT_EQ(refusal([](Graph& g) { g.nodes[0].inputs[1] = 99; }),
              "node 0, sum (first): operand 1 is 99, which is no value");
    EXPECT_EQ(refusal([](Graph& g) { g.nodes[0].outputs[0] = -1; }),
              "result %3 claims to be output 0 of node 0, sum (first), which does not list it there");
}

TEST(Verify, RefusesANodeBeforeItsOperandsProducer) {
    const std::string message = refusal([](Graph& g) { g.nodes[0].inputs[0] = g.nodes[0].outputs[0]; });
    EXPECT_THAT(message, HasSubstr("operand 0, result %3, is made only later, by node 0, sum (first)"));
}

TEST(Verify, RefusesProducersThatDisagreeWithOutputs) {
    EXPECT_THAT(refusal([](Graph& g) { g.values[3].producer = 1; }),
                HasSubstr("claims to be output 0 of node 1"));
    EXPECT_THAT(refusal([](Graph& g) { g.values[3].producer = 7; }), HasSubstr("the graph has 2 nodes"));
    EXPECT_THAT(refusal([](Graph& g) { g.values[3].output_index = 1; }), HasSubstr("claims to be output 1"));
    EXPECT_THAT(refusal([](Graph& g) { g.values[0].producer = 0; }), HasSubstr("input %0 'x' has node 0"));
    EXPECT_THAT(refusal([](Graph& g) { g.nodes[1].outputs = {3}; }), HasSubstr("result %4"));
}

TEST(Verify, RefusesInputsAndStatesThatAreNotListedOnce) {
    EXPECT_EQ(refusal([](Graph& g) { g.inputs.clear(); }), "input %0 'x' is missing in the list of inputs");
    EXPECT_EQ(refusal([](Graph& g) { g.inputs.push_back(0); }), "input %0 'x' is listed twice");
    EXPECT_EQ(refusal([](Graph& g) { g.states[0] = 3; }), "the list of states holds result %3");
    EXPECT_EQ(refusal([](Graph& g) { g.inputs[0] = -5; }), "the list of inputs holds -5, which is no value");
}

TEST(Verify, RefusesEmptyAndRepeatedNames) {
    EXPECT_EQ(refusal([](Graph& g) { g.values[0].name = ""; }), "input %0: the name is empty");
    EXPECT_EQ(refusal([](Graph& g) { g.values[1].name = "x"; }), "state %1 'x': the name is already taken");
    EXPECT_EQ(refusal([](Graph& g) { g.outputs[1].first = "y"; }), "output 'y': the name is already taken");
    EXPECT_EQ(refusal([](Graph& g) { g.outputs[1].first = ""; }), "an output's name is empty");
    EXPECT_EQ(refusal([](Graph& g) { g.outputs[1].second = 5; }), "output 'cache'' is 5, which is no value");
}

TEST(Verify, RefusesConstantsWhoseBytesDoNotFit) {
    EXPECT_EQ(refusal([](Graph& g) {
                  g.values[2].type.shape = {2, 4};
              }),
              "constant %2 'weight' holds 24 bytes, f32[2, 4] needs 32");
    EXPECT_EQ(refusal([](Graph& g) { g.values[2].constant = nullptr; }), "constant %2 'weight' has no bytes");
    EXPECT_EQ(refusal([](Graph& g) {
                  g.values[2].type.shape = {2, Dim::symbolic("n")};
              }),
              "constant %2 'weight': shape [2, n] must be known");
    EXPECT_EQ(refusal([](Graph& g) {
                  g.values[1].constant = g.values[2].constant;
                  g.values[1].type.dtype = DType::f64;
              }),
              "state %1 'cache' holds 24 bytes, f64[2, 3] needs 48");
    EXPECT_EQ(refusal([](Graph& g) { g.values[3].constant = g.values[2].constant; }),
              "result %3 has constant bytes");
}

TEST(Verify, RefusesTypesOutOfRange) {
    EXPECT_THAT(refusal([](Graph& g) { g.values[0].type.shape = {-1}; }), HasSubstr("negative extent -1"));
    EXPECT_THAT(refusal([](Graph& g) { g.values[0].type.dtype = static_cast<DType>(200); }),
                HasSubstr("unknown dtype 200"));
    EXPECT_THAT(refusal([](Graph& g) { g.values[0].type.shape = {Dim::symbolic("n", 5, 4)}; }),
                HasSubstr("symbol n has the empty range 5..4"));
}

TEST(Verify, InfersEveryNodeAgain) {
    EXPECT_EQ(refusal([](Graph& g) { g.values[3].type.shape = {6}; }),
              "node 0, sum (first): output 0, result %3, is stored as f32[6], inference yields f32[2, 3]");
    EXPECT_EQ(refusal([](Graph& g) { g.values[0].type.dtype = DType::f16; }),
              "node 0, sum (first): operand y is f32 but x is f16; they must have the same dtype");
    EXPECT_EQ(refusal([](Graph& g) {
                  g.values.push_back({.type = g.values[3].type, .producer = 0, .output_index = 1});
                  g.nodes[0].outputs.push_back(5);
              }),
              "node 0, sum (first): 2 outputs are stored, inference yields 1");
    EXPECT_EQ(refusal([](Graph& g) { g.nodes[0].op = nullptr; }), "node 0: the op is missing");
}

/// `then` adds nodes after a write of the state; value 2 is the old version's successor.
Graph state_graph(void (*then)(GraphBuilder&, ValueId state, ValueId stored)) {
    GraphBuilder b;
    const TensorType type{DType::f32, {2}};
    const ValueId x = b.input("x", type).value();
    const ValueId state = b.state("cache", type).value();
    const ValueId stored = b.op(sample_op("store"), {state, x}, NamedAttrs{}, "write").value()[0];
    then(b, state, stored);
    (void)b.mark_output("stored", stored);
    return b.finish().value();
}

TEST(Verify, RefusesASecondWriterOfAState) {
    const Graph graph = state_graph([](GraphBuilder& b, ValueId state, ValueId stored) {
        (void)b.op(sample_op("store"), {state, stored}, NamedAttrs{}, "again");
    });
    EXPECT_EQ(verify(graph).error().message,
              "node 1, store (again): operand 0, state %1 'cache', is read after node 0, store (write) wrote "
              "it; read "
              "the output of that node");
}

TEST(Verify, RefusesReadingAStateAfterItsWrite) {
    const Graph graph = state_graph([](GraphBuilder& b, ValueId state, ValueId stored) {
        (void)b.op(sample_op("sum"), {stored, state}, NamedAttrs{}, "late");
    });
    EXPECT_THAT(verify(graph).error().message, AllOf(HasSubstr("sum (late): operand 1, state %1 'cache'"),
                                                     HasSubstr("store (write) wrote it")));
}

TEST(Verify, RefusesAnOutputThatIsAStatesOldVersion) {
    const Graph graph =
        state_graph([](GraphBuilder& b, ValueId state, ValueId) { (void)b.mark_output("old", state); });
    EXPECT_THAT(verify(graph).error().message,
                HasSubstr("output 'old' is the old version of state %1 'cache'"));
}

TEST(Verify, RefusesWritingWhatIsNoState) {
    Graph graph = state_graph([](GraphBuilder&, ValueId, ValueId) {});
    graph.nodes[0].inputs[0] = 0;
    EXPECT_THAT(verify(graph).error().message, HasSubstr("operand state must be a state, got input %0 'x'"));
}

TEST(Verify, RefusesAWriterThatAlsoReadsItsState) {
    Graph graph = state_graph([](GraphBuilder&, ValueId, ValueId) {});
    graph.nodes[0].inputs[1] = 1;
    EXPECT_THAT(verify(graph).error().message,
                HasSubstr("is both written, as operand 0, and read, as operand 1"));
}

TEST(Verify, ChecksAHundredThousandNodes) {
    GraphBuilder b;
    ValueId x = b.input("x", {DType::f32, {2}}).value();
    for (int i = 0; i < 100'000; ++i) x = b.op(sample_op("sum"), {x, x}).value()[0];
    ASSERT_TRUE(b.mark_output("y", x).ok());
    EXPECT_TRUE(verify(b.finish().value()).ok());
}

}  // namespace
}  // namespace headrace::testing
