#include "engine/quantize.h"

#include <gtest/gtest.h>

#include "ir/print.h"
#include "test_graph.h"

namespace headrace {
namespace {

using namespace testing;

TEST(QuantizeGraph, QuantizesMatricesAndLeavesTheRestAsItWasBuilt) {
    TestGraph g;
    const ValueId x = g.input("x", {4, 256});
    const ValueId w = g.constant<float>({128, 256}, random_floats(128 * 256, 1));
    const ValueId bias = g.constant<float>({128}, random_floats(128, 2));
    const ValueId product = g.op("matmul", {x, g.op("transpose", {w})});
    g.output("y", g.op("relu", {g.op("add", {product, bias})}));
    const Graph built = g.finish();
    auto quantized = quantize_graph(built, WeightFormat::q8_0);
    ASSERT_TRUE(quantized.ok()) << quantized.error().message;
    std::vector<std::string> ops;
    for (const Node& node : quantized.value().nodes) ops.emplace_back(node.op->name);
    EXPECT_EQ(ops, (std::vector<std::string>{"fused_matmul", "add", "relu"}));
    EXPECT_NE(print(quantized.value()).find("f32[128, 256] as q8_0"), std::string::npos);
    EXPECT_LT(quantized.value().constant_bytes(), built.constant_bytes() / 3);
    const auto values = random_floats(4 * 256, 3);
    Session before(compile(built)), after(compile(quantized.value()));
    expect_close(run(after, {{4, 256}}, {values})[0], run(before, {{4, 256}}, {values})[0], 0.3f);
}

TEST(QuantizeGraph, AsGivenChangesNoWeights) {
    TestGraph g;
    const ValueId w = g.constant<float>({256, 128}, random_floats(128 * 256, 1));
    g.output("y", g.op("matmul", {g.input("x", {4, 256}), w}));
    const Graph built = g.finish();
    EXPECT_EQ(print(quantize_graph(built, WeightFormat::as_given).value()), print(built));
}

}  // namespace
}  // namespace headrace
