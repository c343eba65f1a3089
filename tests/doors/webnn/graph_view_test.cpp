#include "headrace/graph_view.h"

#include <gmock/gmock.h>

#include <array>
#include <cstring>

namespace headrace::webnn {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::SizeIs;

MLContext on_the_cpu() { return MLContext({.accelerated = false}); }

const MLOption* find(const MLNodeView& node, std::string_view name) {
    for (const auto& [key, value] : node.attributes)
        if (key == name) return &value;
    return nullptr;
}

TEST(GraphView, ShowsTheGraphAsItWasBuilt) {
    MLGraphBuilder builder(on_the_cpu());
    const MLOperand x = builder.input("x", {DType::f32, {2, 3}});
    const MLOperand y = builder.relu(builder.transpose(x), {}, "last");
    const MLGraphView seen = view(builder.build({{"y", y}}));
    ASSERT_EQ(seen.nodes.size(), 2u);
    EXPECT_EQ(seen.nodes[1].op, "relu");
    EXPECT_EQ(seen.nodes[1].label, "last");
    EXPECT_THAT(seen.nodes[1].inputs, ElementsAre(1));
    EXPECT_THAT(seen.inputs, ElementsAre(0));
    EXPECT_THAT(seen.outputs, ElementsAre(Pair("y", 2)));
    EXPECT_EQ(seen.values[0].kind, MLValueKind::input);
    EXPECT_EQ(seen.values[2].kind, MLValueKind::result);
    EXPECT_EQ(seen.values[2].shape[0].number(), 3);
}

TEST(GraphView, TellsTheRangesOfOpenExtents) {
    MLGraphBuilder builder(on_the_cpu());
    const MLOperand x = builder.input("x", {DType::f32, {Extent("rows", 4, 2), 3}});
    const MLGraph graph = builder.build({{"y", builder.concat({x, x}, 0)}});
    const auto inputs = input_shapes(graph), outputs = output_shapes(graph);
    ASSERT_THAT(inputs, SizeIs(1));
    ASSERT_THAT(outputs, SizeIs(1));
    EXPECT_EQ(inputs[0][0].str(), "rows");
    EXPECT_EQ(inputs[0][0].least(), 2);
    EXPECT_EQ(inputs[0][0].most(), 4);
    EXPECT_EQ(inputs[0][1].number(), 3);
    EXPECT_EQ(outputs[0][0].least(), 4);
    EXPECT_EQ(outputs[0][0].most(), 8);
}

TEST(GraphView, LeavesOutAttributesThatAreAbsent) {
    MLGraphBuilder builder(on_the_cpu());
    const MLOperand x = builder.input("x", {DType::f32, {2, 3}});
    const MLOperand y = builder.clamp(x, {{"minValue", 1.5}});
    const MLGraphView seen = view(builder.build({{"y", y}}));
    ASSERT_NE(find(seen.nodes[0], "min_value"), nullptr);
    EXPECT_EQ(std::get<double>(*find(seen.nodes[0], "min_value")), 1.5);
    EXPECT_EQ(find(seen.nodes[0], "max_value"), nullptr);
}

TEST(GraphView, NamesDynamicExtents) {
    MLGraphBuilder builder(on_the_cpu());
    const MLOperand x = builder.input("x", {DType::f32, {MLDimension("n", 8), 3}});
    const MLGraphView seen = view(builder.build({{"y", builder.relu(x)}}));
    EXPECT_EQ(seen.values[0].shape[0].str(), "n");
    EXPECT_EQ(seen.values[0].shape[0].most(), 8);
}

TEST(GraphView, KeepsConstantsAliveAfterTheGraph) {
    const std::array<float, 3> weights{1, 2, 3};
    MLValueView constant;
    {
        MLGraphBuilder builder(on_the_cpu());
        const MLOperand x = builder.input("x", {DType::f32, {3}});
        const MLOperand w = builder.constant({DType::f32, {3}}, weights.data(), sizeof weights);
        constant = view(builder.build({{"y", builder.add(x, w)}})).values[1];
    }
    ASSERT_EQ(constant.bytes.size(), sizeof weights);
    EXPECT_EQ(std::memcmp(constant.bytes.data(), weights.data(), sizeof weights), 0);
}

}  // namespace
}  // namespace headrace::webnn
