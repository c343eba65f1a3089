#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/graph_builder.h"
#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::HasSubstr;

const TensorType kTruth{DType::u8, {}}, kPair{DType::f32, {2}}, kCount{DType::i64, {}};

/// Gives its inputs, by the op identity.
GraphPtr passing(const std::vector<TensorType>& inputs, std::size_t first = 0) {
    GraphBuilder b;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const ValueId x = b.input(fmt::format("x{}", i), inputs[i]).value();
        if (i >= first)
            (void)b.mark_output(fmt::format("y{}", i),
                                b.op(*find_op("identity"), {x}, NamedAttrs{}).value()[0]);
    }
    return std::make_shared<const Graph>(b.finish().value());
}

NamedAttrs branches(const GraphPtr& yes, const GraphPtr& no, Shape results) {
    return {{"then_body", yes},
            {"else_body", no},
            {"then_values", std::int64_t{1}},
            {"results", std::move(results)}};
}

TEST(If, HasTheResultsOfItsBodies) {
    const GraphPtr two = passing({kPair}), three = passing({{DType::f32, {3}}});
    EXPECT_EQ(
        infer("if", {kTruth, kPair, TensorType{DType::f32, {3}}}, branches(two, three, {Dim::symbolic("k")}))
            .value()[0]
            .str(),
        "f32[k]");
}

TEST(If, SaysWhatDoesNotFit) {
    const GraphPtr two = passing({kPair}), other = passing({{DType::i32, {2}}});
    EXPECT_THAT(infer_error("if", {kTruth, kPair}, branches(two, two, {2})), HasSubstr("1 values are given"));
    EXPECT_THAT(infer_error("if", {kTruth, kPair, kCount}, branches(two, two, {2})),
                HasSubstr("else_body takes f32[2] as 'x0', which is i64[]"));
    EXPECT_THAT(
        infer_error("if", {kTruth, kPair, TensorType{DType::i32, {2}}}, branches(two, other, {2})),
        HasSubstr("result 0 is f32 of 1 dimensions of then_body, and i32 of 1 dimensions of else_body"));
    EXPECT_THAT(infer_error("if", {kTruth, kPair, kPair}, branches(two, two, {2, 2})),
                HasSubstr("results has 2 extents; the body's outputs have 1"));
    EXPECT_THAT(infer_error("if", {kPair, kPair, kPair}, branches(two, two, {2})),
                HasSubstr("operand condition is f32[2], allowed dtypes"));
}

TEST(Loop, HasWhatIsCarriedAndWhatIsCollected) {
    // Gives the condition, what is carried and, to be collected, another value.
    const GraphPtr body = passing({kCount, kTruth, kPair, kPair}, 1);
    GraphBuilder b;
    (void)b.input("i", kCount);
    const ValueId x = b.input("x", kPair).value(), c = b.input("c", kTruth).value();
    (void)b.mark_output("goes on", b.op(*find_op("identity"), {c}, NamedAttrs{}).value()[0]);
    (void)b.mark_output("next", b.op(*find_op("identity"), {x}, NamedAttrs{}).value()[0]);
    (void)b.mark_output("collected", b.op(*find_op("neg"), {x}, NamedAttrs{}).value()[0]);
    const GraphPtr loop = std::make_shared<const Graph>(b.finish().value());
    const auto types = infer("loop", {kCount, std::nullopt, kPair, kTruth},
                             {{"body", loop},
                              {"carried", std::int64_t{1}},
                              {"results", Shape{2, Dim::symbolic("k", 0), 2}},
                              {"counts", Shape{Dim::symbolic("k", 0)}}})
                           .value();
    ASSERT_EQ(types.size(), 2U);
    EXPECT_EQ(types[0].str(), "f32[2]");
    EXPECT_EQ(types[1].str(), "f32[k, 2]");
    EXPECT_THAT(infer_error("loop", {kCount, std::nullopt, kPair},
                            {{"body", loop}, {"carried", std::int64_t{1}}, {"results", Shape{2, 3, 2}}}),
                HasSubstr("1 values are given, 1 of them carried; the body has 3 inputs"));
    EXPECT_THAT(infer_error("loop", {kCount, std::nullopt, kPair, kTruth},
                            {{"body", loop}, {"carried", std::int64_t{1}}, {"results", Shape{2, 3, 5}}}),
                HasSubstr("result 1 has the extent 5 in results, and 2 in the body"));
}

}  // namespace
}  // namespace headrace::testing
