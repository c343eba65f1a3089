#include "ir/graph_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <span>

#include "ir/constant.h"
#include "ir/sample_ops.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

const TensorType kPair{DType::f32, {2}};

TEST(GraphBuilder, RefusesEmptyAndRepeatedNames) {
    GraphBuilder b;
    ASSERT_TRUE(b.input("x", kPair).ok());
    EXPECT_THAT(b.input("x", kPair).error().message, HasSubstr("'x' is already taken"));
    EXPECT_THAT(b.state("x", kPair).error().message, HasSubstr("'x' is already taken"));
    EXPECT_THAT(b.input("", kPair).error().message, HasSubstr("the name is empty"));
}

TEST(GraphBuilder, WantsExactlyTheBytesOfAConstant) {
    GraphBuilder b;
    EXPECT_TRUE(b.constant(kPair, counting_bytes(8)).ok());
    EXPECT_THAT(b.constant(kPair, counting_bytes(7), "w").error().message,
                HasSubstr("constant 'w': 7 bytes given, f32[2] needs 8"));
    EXPECT_FALSE(b.constant({DType::f32, {Dim::symbolic("n")}}, counting_bytes(8)).ok());
}

TEST(GraphBuilder, CopiesConstantsOnlyWhereVectorsCannotBeReadFromThem) {
    alignas(16) const std::array<std::byte, 24> memory{std::byte{7}};
    const auto constant = [&](std::size_t offset) {
        GraphBuilder b;
        auto given = std::make_shared<const Constant>(
            Constant{.bytes = std::span(memory).subspan(offset, 8), .key = "w"});
        const ValueId id = b.constant(kPair, std::move(given)).value();
        return b.graph().value(id).constant;
    };
    EXPECT_EQ(constant(0)->bytes.data(), memory.data());
    EXPECT_EQ(constant(16)->bytes.data(), memory.data() + 16);
    const auto copy = constant(4);
    EXPECT_TRUE(is_constant_aligned(copy->bytes));
    EXPECT_NE(copy->bytes.data(), memory.data() + 4);
    EXPECT_THAT(copy->bytes, ElementsAreArray(std::span(memory).subspan(4, 8)));
    EXPECT_EQ(copy->key, "w");
}

TEST(GraphBuilder, NamesOpAndLabelInErrors) {
    GraphBuilder b;
    const ValueId x = b.input("x", kPair).value(), y = b.input("y", {DType::f32, {3}}).value();
    const auto sum = [&](std::vector<ValueId> operands, const NamedAttrs& attrs = {}) {
        return b.op(sample_op("sum"), std::move(operands), attrs, "here").error().message;
    };
    EXPECT_EQ(sum({x, y}), "sum (here): x is f32[2], y is f32[3]; their shapes must be equal");
    EXPECT_THAT(sum({x}), HasSubstr("sum (here): 1 operands given, at least 2 needed"));
    EXPECT_THAT(sum({x, x, x}), HasSubstr("at most 2 taken"));
    EXPECT_THAT(sum({x, 99}), HasSubstr("operand 99 is not a value of this graph"));
    EXPECT_THAT(sum({kNoValue, x}), HasSubstr("operand x is missing"));
    EXPECT_THAT(sum({x, x}, {{"axis", true}}), HasSubstr("sum (here): unknown attribute 'axis'"));
    EXPECT_TRUE(b.graph().nodes.empty());
}

TEST(GraphBuilder, ChecksDtypesByTheOpsRules) {
    GraphBuilder b;
    const ValueId x = b.input("x", kPair).value(), h = b.input("h", {DType::f16, {2}}).value();
    const ValueId i = b.input("i", {DType::i32, {2}}).value();
    EXPECT_THAT(b.op(sample_op("sum"), {x, h}).error().message, HasSubstr("must have the same dtype"));
    EXPECT_THAT(b.op(sample_op("sum"), {i, i}).error().message,
                HasSubstr("operand x is i32[2], allowed dtypes: f32"));
}

TEST(GraphBuilder, WritesStatesOnly) {
    GraphBuilder b;
    const ValueId x = b.input("x", kPair).value();
    EXPECT_THAT(b.op(sample_op("store"), {x, x}).error().message, HasSubstr("must be a state"));
    EXPECT_TRUE(b.op(sample_op("store"), {b.state("s", kPair).value(), x}).ok());
}

TEST(GraphBuilder, ChecksInitialBytesOfStates) {
    GraphBuilder b;
    const auto bytes = std::make_shared<Constant>();
    EXPECT_THAT(b.state("s", kPair, bytes).error().message, HasSubstr("0 initial bytes, f32[2] needs 8"));
}

TEST(GraphBuilder, DropsAbsentTrailingOperands) {
    GraphBuilder b;
    const ValueId x = b.input("x", kPair).value();
    ASSERT_TRUE(b.op(sample_op("everything"), {x, kNoValue, kNoValue}).ok());
    EXPECT_EQ(b.graph().nodes[0].inputs, std::vector<ValueId>{x});
}

TEST(GraphBuilder, ChecksOutputsAndStartsAfreshAfterFinish) {
    GraphBuilder b;
    EXPECT_THAT(b.finish().error().message, HasSubstr("no output"));
    const ValueId x = b.input("x", kPair).value();
    EXPECT_FALSE(b.mark_output("", x).ok());
    EXPECT_FALSE(b.mark_output("y", 7).ok());
    EXPECT_TRUE(b.mark_output("y", x).ok());
    EXPECT_FALSE(b.mark_output("y", x).ok());
    EXPECT_TRUE(b.finish().ok());
    EXPECT_TRUE(b.graph().values.empty());
    EXPECT_TRUE(b.input("x", kPair).ok());
}

}  // namespace
}  // namespace headrace::testing
