#include <gtest/gtest.h>

#include <vector>

#include "engine/test_graph.h"
#include "headrace/webnn.h"

namespace headrace::webnn {
namespace {

using headrace::testing::message_of;

const MLContextOptions kCpu{.accelerated = false};

float run(const MLGraph& graph, std::vector<float> inputs) {
    const std::vector<std::int64_t> shape{1};
    std::vector<InputView> in;
    for (const float& value : inputs) in.push_back({DType::f32, shape, &value});
    float y = 0;
    const OutputView out[] = {{&y, sizeof(y)}};
    graph.run(in, out);
    return y;
}

TEST(Builder, BuildsOneGraphAsTheSpecificationHasIt) {
    MLGraphBuilder builder{MLContext(kCpu)};
    const MLOperand y = builder.relu(builder.input("x", {DType::f32, {1}}));
    builder.build({{"y", y}});
    for (const std::string& message : {message_of(
                                           [&] {
                                               builder.build({{"y", y}});
                                           },
                                           Code::invalid_state),
                                       message_of(
                                           [&] {
                                               builder.buildNext({{"y", y}});
                                           },
                                           Code::invalid_state),
                                       message_of([&] { builder.relu(y); }, Code::invalid_state)})
        EXPECT_NE(message.find("this builder has already built its graph"), std::string::npos) << message;
}

TEST(Builder, OperandsTellWhatTheyAreAfterTheBuild) {
    MLGraphBuilder builder{MLContext(kCpu)};
    const MLOperand x = builder.input("x", {DType::f32, {2, 3}});
    const MLOperand y = builder.cast(x, DType::f16);
    builder.build({{"y", y}});
    EXPECT_EQ(y.dataType(), DType::f16);
    EXPECT_EQ(y.shape().size(), 2u);
    EXPECT_EQ(x.name(), "x");
}

TEST(Builder, SaysDataTypesAsTheSpecificationDoesButWithinQuotesAndLabels) {
    MLGraphBuilder builder{MLContext(kCpu)};
    const MLOperand x = builder.input("i32", {DType::f32, {2}}), n = builder.input("n", {DType::i32, {2}});
    EXPECT_EQ(message_of([&] { builder.add(x, n, {}, "of f32"); }, Code::invalid_argument),
              "add (of f32): operand b is int32 but a is float32; they must have the same dtype");
    EXPECT_EQ(message_of(
                  [&] {
                      builder.input("i32", {DType::i32, {2}});
                  },
                  Code::invalid_argument),
              "input: the name 'i32' is already taken");
    const float one = 1;
    EXPECT_EQ(message_of(
                  [&] {
                      builder.constant({DType::f32, {2}}, &one, sizeof(one), "f16");
                  },
                  Code::invalid_argument),
              "constant 'f16': 4 bytes given, float32[2] needs 8");
}

TEST(Builder, BuildNextGivesEachGraphWhatItsOutputsNeed) {
    MLGraphBuilder builder{MLContext(kCpu)};
    const MLOperand x = builder.input("x", {DType::f32, {1}});
    const MLOperand doubled = builder.add(x, x);
    const MLGraph first = builder.buildNext({{"y", doubled}});
    const MLOperand z = builder.input("z", {DType::f32, {1}});
    const MLGraph second = builder.buildNext({{"y", builder.mul(doubled, z)}});
    const MLGraph third = builder.buildNext({{"y", builder.neg(z)}});
    EXPECT_EQ(run(first, {3}), 6);
    EXPECT_EQ(run(second, {3, 5}), 30);
    EXPECT_EQ(run(third, {5}), -5);
    EXPECT_EQ(third.operationCount(), 1u);
    EXPECT_TRUE(third.mayBeGiven("x"));
    EXPECT_FALSE(second.mayBeGiven("x"));
    EXPECT_FALSE(third.mayBeGiven("w"));
}

}  // namespace
}  // namespace headrace::webnn
