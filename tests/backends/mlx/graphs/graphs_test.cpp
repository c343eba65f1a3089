// The graph lane's ops on the device that the library registers, each sample of the catalog against its
// reference.
#include <gmock/gmock.h>

#include <cstdlib>

#include "engine/sample_outcome.h"

namespace headrace {
namespace {

using namespace testing;

class OnMlx : public ::testing::Test {
protected:
    static void SetUpTestSuite() { setenv("GGML_MLX_LIBRARY", HEADRACE_MLX_LIBRARY, 1); }
};

TEST_F(OnMlx, EverySampleAgreesWithItsReference) {
    int on_device = 0;
    for (const Case& c : all_cases()) {
        SCOPED_TRACE(std::string(c.op->name) + " " + std::to_string(c.index));
        const Built built = build(c);
        const Outcome reference = execute(built, {.packed_kernels = false, .native_ops = false});
        const Outcome there = execute(built, {.device = "mlx"});
        on_device += there.device == "MLX0";
        for (std::size_t i = 0; i < there.outputs.size(); ++i)
            expect_same(built.graph.value(built.graph.outputs[i].second).type, there.outputs[i],
                        reference.outputs[i], c.sample.tolerance);
    }
    EXPECT_GT(on_device, 100);
}

TEST_F(OnMlx, AConvolutionalGraphRunsInOneSplit) {
    TestGraph g;
    const ValueId x = g.input("x", {1, 3, 16, 16});
    const ValueId w = g.constant<float>({8, 3, 3, 3}, random_floats(8 * 27, 1));
    const ValueId b = g.constant<float>({8, 1, 1}, random_floats(8, 2));
    const ValueId y = g.op("gelu", {g.op("add", {g.op("conv2d", {x, w}), b})});
    g.output("y", g.op("conv2d", {y, g.constant<float>({4, 8, 3, 3}, random_floats(4 * 72, 4))}));
    const Graph graph = g.finish();
    const auto input = random_floats(3 * 256, 3);
    Session on_cpu(compile(graph)), on_mlx(compile(graph, {.device = "mlx"}));
    const std::vector<std::vector<std::int64_t>> shapes{{1, 3, 16, 16}};
    const auto expected = run(on_cpu, shapes, {input})[0], actual = run(on_mlx, shapes, {input})[0];
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i) ASSERT_NEAR(actual[i], expected[i], 1e-4) << i;
    EXPECT_EQ(on_mlx.stats().splits, 1);
    for (const NodeStats& node : on_mlx.stats().nodes) EXPECT_EQ(node.device, "MLX0") << node.title;
}

TEST_F(OnMlx, IsChosenByNameOnly) {
    compile(build(all_cases()[0]).graph, {.device = "mlx"});  // loaded from here on
    Session automatic(compile(build(all_cases()[0]).graph, {.device = "auto"}));
    for (const NodeStats& node : automatic.stats().nodes) EXPECT_NE(node.device, "MLX0");
}

}  // namespace
}  // namespace headrace
