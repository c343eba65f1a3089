/// Graphs of several ops on a device, beside the CPU: what passes make of them, states, shapes, threads.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "device/test_device.h"
#include "engine/special_values.h"
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

TEST(DeviceGraph, IsInOnePiece) {
    const Ran there = run_filled(network(), {.device = test_device(), .threads = 1});
    EXPECT_EQ(there.nodes_on(test_device()), static_cast<std::int64_t>(there.stats.nodes.size()));
}

TEST(DeviceGraph, SpecialValuesAreThoseOfTheReference) {
    expect_special_values({.device = test_device(), .threads = 1});
    expect_special_largest({.device = test_device(), .threads = 1});
    expect_special_choices({.device = test_device(), .threads = 1});
    expect_special_resizing({.device = test_device(), .threads = 1});
}

TEST(DeviceGraph, AComparisonDecidesThereWithoutBytes) {
    TestGraph g;
    const ValueId x = g.input("x", {4}), y = g.input("y", {4});
    g.output("z", g.op("where", {g.op("greater", {x, y}), x, g.op("neg", {y})}));
    Session session(compile(g.finish(), {.device = test_device(), .threads = 1}));
    EXPECT_EQ(run(session, {{4}, {4}}, {{1, -2, 3, 4}, {0, 5, INFINITY, 4}})[0],
              (std::vector<float>{1, -5, -INFINITY, -4}));
    EXPECT_EQ(session.stats().splits, 1);
}

TEST(DeviceGraph, IndicesOfAnyTypeAreBroughtIntoTheTable) {
    const std::vector<float> table{0, 1, 10, 11, 20, 21};
    const auto rows_of = [&]<class T>(const std::vector<T>& indices, DType dtype) {
        TestGraph g;
        const ValueId rows = g.constant<float>({3, 2}, table), at = g.input("at", {4}, dtype);
        g.output("y", g.op("gather", {rows, at}, {{"axis", std::int64_t{0}}}));
        Session session(compile(g.finish(), {.device = test_device(), .threads = 1}));
        const std::vector<std::int64_t> shape{4};
        const std::vector<InputView> in{{dtype, shape, indices.data()}};
        std::vector<float> y(8);
        const std::vector<OutputView> out{{y.data(), y.size() * sizeof(float)}};
        session.run(in, out);
        EXPECT_EQ(session.stats().nodes[0].device, test_device());
        return y;
    };
    const std::vector<float> expected{20, 21, 10, 11, 0, 1, 20, 21};
    EXPECT_EQ(rows_of(std::vector<std::int32_t>{-1, 1, -7, 2000000000}, DType::i32), expected);
    EXPECT_EQ(rows_of(std::vector<std::int64_t>{-1, 1, -7, std::int64_t{1} << 40}, DType::i64), expected);
    EXPECT_EQ(rows_of(std::vector<std::uint32_t>{2, 1, 0, 4000000000u}, DType::u32), expected);
}

/// total[2 : 5] += x, and what is in it then.
Graph accumulator() {
    TestGraph g;
    const ValueId total = g.state("total", {6}), x = g.input("x", {3});
    g.output("total", g.op("accumulate", {total, x}, {{"offset", std::int64_t{2}}}));
    return g.finish();
}

std::vector<float> state_of(const Session& session) {
    std::vector<float> values(6);
    session.read_state("total", values.data(), values.size() * sizeof(float));
    return values;
}

TEST(DeviceState, AccumulatesThereFromRunToRun) {
    Session session(compile(accumulator(), {.device = test_device(), .threads = 1}));
    const std::vector<float> x{1, 2, 4};
    run(session, {{3}}, {x});
    EXPECT_EQ(session.stats().nodes[0].device, test_device());
    EXPECT_EQ(run(session, {{3}}, {x})[0], (std::vector<float>{0, 0, 2, 4, 8, 0}));
    EXPECT_EQ(state_of(session), (std::vector<float>{0, 0, 2, 4, 8, 0}));
    const std::vector<float> other{9, 8, 7, 6, 5, 4};
    session.write_state("total", other.data(), other.size() * sizeof(float));
    EXPECT_EQ(run(session, {{3}}, {x})[0], (std::vector<float>{9, 8, 8, 8, 9, 4}));
    session.reset_states();
    EXPECT_EQ(run(session, {{3}}, {x})[0], (std::vector<float>{0, 0, 1, 2, 4, 0}));
}

TEST(DeviceState, IsSharedByASessionOnTheCpu) {
    Session there(compile(accumulator(), {.device = test_device(), .threads = 1}));
    const Session* const sharing[] = {&there};
    Session here(compile(accumulator(), {.threads = 1}), sharing);
    const std::vector<float> x{1, 2, 4};
    run(there, {{3}}, {x});
    EXPECT_EQ(run(here, {{3}}, {x})[0], (std::vector<float>{0, 0, 2, 4, 8, 0}));
    EXPECT_EQ(run(there, {{3}}, {x})[0], (std::vector<float>{0, 0, 3, 6, 12, 0}));
    EXPECT_EQ(state_of(here), (std::vector<float>{0, 0, 3, 6, 12, 0}));
}

/// One that ggml has no operation for keeps the state, and the other write, on the CPU.
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
