/// Graphs of several ops on a device, beside the CPU: what passes make of them, states, shapes, threads.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "device/test_device.h"
#include "passes/pipeline.h"
#include "run/limited/filled_run.h"

namespace headrace {
namespace {

using namespace testing;

using List = std::vector<std::int64_t>;

/// A convolution with what follows it, and an attention layer with its feed-forward part.
Graph network() {
    TestGraph g;
    const auto constant = [&](Shape shape, unsigned seed) {
        std::int64_t count = 1;
        for (const Dim& d : shape) count *= d.size();
        return g.constant<float>(std::move(shape), random_floats(static_cast<std::size_t>(count), seed));
    };
    ValueId image = g.op("conv2d", {g.input("image", {1, 3, 12, 12}), constant({8, 3, 3, 3}, 1)},
                         {{"padding", List{1, 1, 1, 1}}});
    image = g.op("relu", {g.op("add", {image, constant({1, 8, 1, 1}, 2)})});
    image = g.op("max_pool2d", {image}, {{"window_dimensions", List{2, 2}}, {"strides", List{2, 2}}});
    g.output("pooled", g.op("reduce_mean", {image}, {{"axes", List{2, 3}}}));
    const ValueId rows = g.input("rows", {2, 10, 32});
    const ValueId queries = g.op("matmul", {rows, constant({32, 32}, 3)});
    const ValueId keys =
        g.op("transpose", {g.op("matmul", {rows, constant({32, 32}, 4)})}, {{"permutation", List{0, 2, 1}}});
    const ValueId seen = g.op("softmax", {g.op("matmul", {queries, keys})}, {{"axis", std::int64_t{2}}});
    const ValueId mixed = g.op("add", {g.op("matmul", {seen, rows}), rows});
    const ValueId wide =
        g.op("gelu", {g.op("add", {g.op("matmul", {mixed, constant({32, 64}, 5)}), constant({64}, 6)})});
    g.output("narrow", g.op("matmul", {wide, constant({64, 32}, 7)}));
    g.output("limited", g.op("clamp", {wide}, {{"min_value", -0.5}, {"max_value", 0.5}}));
    g.output("lengths", g.op("reduce_l2", {mixed}, {{"axes", List{1}}}));
    const ValueId total = g.state("total", {1, 8});
    g.output("total", g.op("assign", {total, g.op("add", {total, constant({1, 8}, 8)})}));
    return g.finish();
}

TEST(DeviceGraph, GivesWhatTheCpuGivesWhicheverPassIsOff) {
    const Graph graph = network();
    const Ran here = run_filled(graph, {.threads = 1});
    std::vector<std::vector<std::string>> switched_off{{}};
    for (const Pass& pass : all_passes()) switched_off.push_back({std::string(pass.name)});
    for (const auto& off : switched_off) {
        SCOPED_TRACE(off.empty() ? "all passes" : off.front());
        const Ran there = run_filled(graph, {.device = test_device(), .threads = 1, .disabled_passes = off});
        EXPECT_GT(there.nodes_on(test_device()), 0);
        expect_same_outputs(graph, there, here, 1e-5);
    }
}

TEST(DeviceGraph, IsInFewPieces) {
    const Ran there = run_filled(network(), {.device = test_device(), .threads = 1});
    EXPECT_GE(there.nodes_on(test_device()), static_cast<std::int64_t>(there.stats.nodes.size()) - 1)
        << "all but the state's write";
}

TEST(DeviceGraph, NanComesThroughWhatGgmlWouldMakeANumberOf) {
    TestGraph g;
    const ValueId x = g.input("x", {1, 1, 2, 2});
    g.output("relu", g.op("relu", {x}));
    g.output("clamp", g.op("clamp", {x}, {{"min_value", 0.0}, {"max_value", 1.0}}));
    g.output("leaky", g.op("leaky_relu", {x}, {{"alpha", 0.5}}));
    g.output("hard", g.op("hard_sigmoid", {x}, {}));
    g.output("pool", g.op("max_pool2d", {x}, {{"window_dimensions", List{1, 2}}}));
    const Graph graph = g.finish();
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    for (const std::vector<float>& values :
         {std::vector<float>{1, NAN, -kInfinity, 2}, std::vector<float>{NAN, -1, kInfinity, -3}}) {
        std::vector<std::vector<std::vector<float>>> found;
        for (const std::string& device : {std::string("cpu"), test_device()}) {
            Session session(compile(graph, {.device = device, .threads = 1}));
            found.push_back(run(session, {{1, 1, 2, 2}}, {values}));
        }
        for (std::size_t i = 0; i < found[0].size(); ++i)
            for (std::size_t k = 0; k < found[0][i].size(); ++k) {
                const float here = found[0][i][k], there = found[1][i][k];
                EXPECT_TRUE(here == there || (std::isnan(here) && std::isnan(there)) ||
                            std::abs(here - there) < 1e-6f)
                    << graph.outputs[i].first << " " << k << ": " << there << ", not " << here;
            }
    }
}

TEST(DeviceGraph, EachSetOfShapesRunsThere) {
    TestGraph g;
    const ValueId x = g.input("x", {Dim::symbolic("rows", 1, 64), 16});
    g.output("y", g.op("tanh", {g.op("matmul", {x, g.constant<float>({16, 16}, random_floats(256, 1))})}));
    const Graph graph = g.finish();
    Session here(compile(graph, {.threads = 1}));
    Session there(compile(graph, {.device = test_device(), .threads = 1}));
    for (const std::int64_t rows : {1, 8, 9, 40, 3}) {
        const auto x_values = random_floats(static_cast<std::size_t>(rows * 16), 2);
        const auto expected = run(here, {{rows, 16}}, {x_values})[0];
        const auto actual = run(there, {{rows, 16}}, {x_values})[0];
        for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 2e-6) << rows;
    }
}

TEST(DeviceGraph, SessionsOfOneExecutableRunThereInThreads) {
    const Graph graph = network();
    const Executable executable = compile(graph, {.device = test_device(), .threads = 1});
    const Ran here = run_filled(graph, {.threads = 1});
    std::atomic<int> same = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
        threads.emplace_back([&] {
            Session session(executable);
            const Ran there = run_filled(session, graph);
            same += there.outputs.size() == here.outputs.size();
            expect_same_outputs(graph, there, here, 1e-5);
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(same, 3);
}

}  // namespace
}  // namespace headrace
