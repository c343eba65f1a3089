#include <gtest/gtest.h>

#include <vector>

#include "engine/test_graph.h"
#include "headrace/webnn.h"

namespace headrace::webnn {
namespace {

using headrace::testing::message_of;

const MLContextOptions kCpuAlone{.accelerated = false};

/// y = x + 1 on x[4].
MLGraph increment(const MLContext& context) {
    MLGraphBuilder builder(context);
    const MLOperand x = builder.input("x", {DType::f32, {4}});
    return builder.build({{"y", builder.add(x, builder.constant(DType::f32, 1.0))}});
}

std::vector<float> content(const MLContext& context, const MLTensor& tensor) {
    std::vector<float> values(4);
    context.readTensor(tensor, values.data(), 16);
    return values;
}

TEST(Dispatch, AnOutputThatIsAnInputIsRefusedAsTheSpecificationHasIt) {
    const MLContext context(kCpuAlone);
    const MLGraph graph = increment(context);
    const MLTensor tensor = context.createTensor({DType::f32, {4}, true, true});
    EXPECT_EQ(message_of(
                  [&] {
                      context.dispatch(graph, {{"x", tensor}}, {{"y", tensor}});
                  },
                  Code::invalid_argument),
              "dispatch: output 'y' overlaps the memory of input 'x'");
    EXPECT_EQ(content(context, tensor), (std::vector<float>{0, 0, 0, 0}));
}

TEST(Dispatch, BindingsMixTensorsAndMemoryAndMayBeInPlace) {
    const MLContext context(kCpuAlone);
    const MLGraph graph = increment(context);
    const MLTensor tensor = context.createTensor({DType::f32, {4}, true, true});
    std::vector<float> memory{1, 2, 3, 4};
    const MLBinding bound(DType::f32, {4}, memory.data());
    context.dispatchBound(graph, {{"x", bound}}, {{"y", tensor}});
    EXPECT_EQ(content(context, tensor), (std::vector<float>{2, 3, 4, 5}));
    context.dispatchBound(graph, {{"x", tensor}}, {{"y", tensor}});
    EXPECT_EQ(content(context, tensor), (std::vector<float>{3, 4, 5, 6}));
    context.dispatchBound(graph, {{"x", bound}}, {{"y", bound}});
    EXPECT_EQ(memory, (std::vector<float>{2, 3, 4, 5}));
    context.dispatchBound(graph, {{"x", tensor}}, {{"y", bound}});
    EXPECT_EQ(memory, (std::vector<float>{4, 5, 6, 7}));
}

TEST(Dispatch, BindingsAreCheckedLikeTensors) {
    const MLContext context(kCpuAlone);
    const MLGraph graph = increment(context);
    std::vector<float> memory(4);
    const MLBinding good(DType::f32, {4}, memory.data());
    const auto message = [&](const MLBindings& in, const MLBindings& out) {
        return message_of([&] { context.dispatchBound(graph, in, out); }, Code::invalid_argument);
    };
    EXPECT_EQ(message({{"x", MLBinding(DType::i32, {4}, memory.data())}}, {{"y", good}}),
              "dispatch: input 'x' is int32, the graph declares float32");
    EXPECT_EQ(message({{"x", good}}, {{"y", MLBinding(DType::f32, {2, 2}, memory.data())}}),
              "dispatch: output 'y' has shape [2, 2], the graph declares [4]");
    EXPECT_EQ(message({{"x", good}}, {}), "dispatch: Missing output: y");
    EXPECT_EQ(message({{"x", good}, {"z", good}}, {{"y", good}}), "dispatch: the graph has no input 'z'");
}

TEST(Dispatch, AConstantTensorIsNoOutput) {
    const MLContext context(kCpuAlone);
    const std::vector<float> values{1, 2, 3, 4};
    const MLTensor constant = context.createConstantTensor({DType::f32, {4}}, values.data(), 16);
    const MLTensor x = context.createTensor({DType::f32, {4}});
    EXPECT_EQ(message_of(
                  [&] {
                      context.dispatch(increment(context), {{"x", x}}, {{"y", constant}});
                  },
                  Code::invalid_argument),
              "dispatch: output 'y': the tensor is constant; create it with createTensor");
}

}  // namespace
}  // namespace headrace::webnn
