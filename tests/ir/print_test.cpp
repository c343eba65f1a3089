#include "ir/print.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/sample_ops.h"

namespace headrace::testing {
namespace {

using ::testing::HasSubstr;

TEST(Print, ShowsInputsConstantsStatesNodesAndOutputs) {
    EXPECT_EQ(
        print(small_graph()),
        "input    %0 \"x\" : f32[2, 3]\n"
        "state    %1 \"cache\" : f32[2, 3]\n"
        "constant %2 \"weight\" : f32[2, 3]  = [3.8204714e-37, 1.0082514e-34, 2.6584628e-32, 7.003653e-30, "
        "1.8436203e-27, 4.849422e-25]\n"
        "%3 = sum(%0 \"x\", %2 \"weight\") : f32[2, 3]   # first\n"
        "%4 = store(%1 \"cache\", %3) : f32[2, 3]   # last\n"
        "output   \"y\" = %3\n"
        "output   \"cache'\" = %4\n");
}

TEST(Print, LeavesOutAttributesThatEqualTheirDefaults) {
    GraphBuilder b;
    const ValueId x = b.input("x", {DType::f32, {2}}).value();
    const NamedAttrs attrs{{"count", std::int64_t{3}},
                           {"axes", std::vector<std::int64_t>{1, 2}},
                           {"scale", 0.5},
                           {"limit", std::monostate()},
                           {"type", DType::bf16}};
    ASSERT_TRUE(b.op(sample_op("everything"), {x, kNoValue, x}, attrs).ok());
    EXPECT_EQ(
        print(b.graph(), b.graph().nodes[0]),
        "%1 = everything(%0 \"x\", _, %0 \"x\") {scale=0.5, axes=[1, 2], type=bf16, limit=none} : f32[2]");
}

TEST(Print, ShowsSymbolsAndTheirRanges) {
    GraphBuilder b;
    ASSERT_TRUE(b.input("x", {DType::f32, {Dim::symbolic("batch"), Dim::symbolic("seq", 1, 512)}}).ok());
    EXPECT_EQ(print(b.graph()), "input    %0 \"x\" : f32[batch, seq]  (batch >= 1, seq = 1..512)\n");
}

TEST(Print, ShowsTheSizeOfLargeConstantsAndTheValueOfScalars) {
    GraphBuilder b;
    ASSERT_TRUE(b.constant({DType::f32, {32, 16}}, counting_bytes(2048)).ok());
    const float half = 0.5F;
    ASSERT_TRUE(b.constant({DType::f32, {}}, std::as_bytes(std::span(&half, 1))).ok());
    ASSERT_TRUE(b.constant({DType::u4, {3}}, counting_bytes(2)).ok());
    EXPECT_EQ(print(b.graph()),
              "constant %0 : f32[32, 16]  (2.0 KiB)\n"
              "constant %1 : f32[]  = 0.5\n"
              "constant %2 : u4[3]  (2 bytes)\n");
}

TEST(Print, SurvivesBrokenGraphs) {
    Graph graph = small_graph();
    graph.nodes[0].op = nullptr;
    graph.nodes[0].inputs = {77, kNoValue};
    graph.nodes[1].outputs = {-9};
    graph.outputs[0].second = 1000;
    EXPECT_THAT(print(graph),
                HasSubstr("%3 = ?(%77?, _) : f32[2, 3]   # first\n%-9? = store(%1 \"cache\", %3) : ?"));
}

}  // namespace
}  // namespace headrace::testing
