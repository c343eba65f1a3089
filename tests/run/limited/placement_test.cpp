/// Tensors that a device takes and such that it does not, in every place of a graph.
#include <gmock/gmock.h>

#include "ggml-backend.h"
#include "plan/plan.h"
#include "run/limited/filled_run.h"
#include "run/limited/limited_device.h"

namespace headrace {
namespace {

using namespace testing;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::size_t kLimit = 4096;  // bytes of a tensor: 32 rows of 32 floats
constexpr std::int64_t kFits = 32, kTooMany = 33;

ValueId constant(TestGraph& g, std::int64_t rows, std::int64_t columns, unsigned seed = 1) {
    return g.constant<float>({rows, columns}, random_floats(static_cast<std::size_t>(rows * columns), seed));
}

ValueId slice(TestGraph& g, ValueId x, std::vector<std::int64_t> starts, Shape sizes) {
    return g.op("slice", {x}, {{"starts", std::move(starts)}, {"sizes", std::move(sizes)}});
}

ValueId reshape(TestGraph& g, ValueId x, Shape shape) {
    return g.op("reshape", {x}, {{"new_shape", std::move(shape)}});
}

/// A graph in which one tensor grows with the rows; the nodes that must leave the device when it is too
/// large.
struct Role {
    std::string name;
    Graph (*build)(std::int64_t rows);
    std::vector<bool> leaves;
};

Graph large_constant(std::int64_t rows) {
    TestGraph g;
    const ValueId y = g.op("matmul", {g.input("x", {4, rows}), constant(g, rows, 32)});
    g.output("y", g.op("tanh", {y}));
    return g.finish();
}

Graph large_input(std::int64_t rows) {
    TestGraph g;
    const ValueId y = g.op("matmul", {g.input("x", {rows, 32}), constant(g, 32, 4)});
    g.output("y", g.op("tanh", {y}));
    return g.finish();
}

Graph large_output(std::int64_t rows) {
    TestGraph g;
    const ValueId x = g.op("tanh", {g.input("x", {rows, 1})});
    g.output("y", g.op("matmul", {x, constant(g, 1, 32)}));
    return g.finish();
}

Graph large_state(std::int64_t rows) {
    TestGraph g;
    const ValueId state = g.state("s", {rows, 32});
    const ValueId x = g.op("tanh", {g.input("x", {rows, 32 / 16})});
    const ValueId wide = g.op("concat", std::vector<ValueId>(16, x), {{"axis", std::int64_t{1}}});
    const ValueId written = g.op("accumulate", {state, wide});
    const ValueId y = g.op("matmul", {written, constant(g, 32, 4)});
    g.output("y", g.op("tanh", {y}));
    return g.finish();
}

Graph large_intermediate(std::int64_t rows) {
    TestGraph g;
    const ValueId x = g.op("tanh", {g.input("x", {rows, 1})});
    const ValueId wide = g.op("matmul", {x, constant(g, 1, 32)});
    const ValueId narrow = g.op("matmul", {wide, constant(g, 32, 4)});
    g.output("y", g.op("tanh", {narrow}));
    return g.finish();
}

Graph reshaped_constant(std::int64_t rows) {
    TestGraph g;
    const ValueId flat =
        g.constant<float>({rows * 32}, random_floats(static_cast<std::size_t>(rows * 32), 2));
    const ValueId y = g.op("matmul", {g.input("x", {4, rows}), reshape(g, flat, {rows, 32})});
    g.output("y", g.op("tanh", {y}));
    return g.finish();
}

Graph small_view_of_a_large_constant(std::int64_t rows) {
    TestGraph g;
    const ValueId first = slice(g, constant(g, rows, 32), {1, 0}, {4, 32});
    g.output("y", g.op("add", {g.input("x", {4, 32}), first}));
    return g.finish();
}

Graph small_view_of_a_large_input(std::int64_t rows) {
    TestGraph g;
    const ValueId first = slice(g, g.input("x", {rows, 32}), {2, 0}, {4, 32});
    g.output("y", g.op("tanh", {first}));
    return g.finish();
}

Graph small_columns_of_a_large_input(std::int64_t rows) {
    TestGraph g;
    const ValueId first = slice(g, g.input("x", {rows, 32}), {0, 3}, {rows, 2});
    g.output("y", g.op("tanh", {first}));
    return g.finish();
}

Graph broadcast_to_a_large_tensor(std::int64_t rows) {
    TestGraph g;
    const ValueId wide = g.op("add", {g.input("x", {rows, 1}), constant(g, 1, 32)});
    const ValueId sum =
        g.op("reduce_sum", {wide}, {{"axes", std::vector<std::int64_t>{1}}, {"keep_dimensions", true}});
    g.output("y", g.op("tanh", {sum}));
    return g.finish();
}

/// The device makes half of it; the CPU adds what the device lacks.
Graph large_tensor_from_the_cpu(std::int64_t rows) {
    TestGraph g;
    const ValueId large = on_the_cpu(g, g.input("x", {rows, 32}));
    const ValueId y = g.op("matmul", {large, constant(g, 32, 4)});
    g.output("y", g.op("tanh", {y}));
    return g.finish();
}

const std::vector<Role> kRoles{
    {"Constant", large_constant, {true, false}},
    {"Input", large_input, {true, false}},
    {"Output", large_output, {false, true}},
    {"State", large_state, {false, true, true, true, false}},
    {"Intermediate", large_intermediate, {false, true, true, false}},
    {"ReshapedConstant", reshaped_constant, {true, true, false}},
    {"SmallViewOfALargeConstant", small_view_of_a_large_constant, {true, false}},
    {"SmallViewOfALargeInput", small_view_of_a_large_input, {true, false}},
    {"SmallColumnsOfALargeInput", small_columns_of_a_large_input, {true, false}},
    {"BroadcastToALargeTensor", broadcast_to_a_large_tensor, {true, true, false}},
    {"LargeTensorFromTheCpu", large_tensor_from_the_cpu, {true, true, false}},
};

/// So that each node of a role's graph stays one.
CompileOptions as_written(const std::string& device = "cpu") {
    return {
        .device = device,
        .disabled_passes = {"fold_constants", "eliminate_no_ops", "sink_reshapes", "fuse_matmul_epilogue"}};
}

/// On the CPU are always the nodes that the device lacks.
bool is_for_the_cpu(const NodeStats& node) { return node.title == "fmod"; }

void PrintTo(const Role& role, std::ostream* out) { *out << role.name; }

class LargeTensor : public ::testing::TestWithParam<Role> {};

TEST_P(LargeTensor, ThatTheDeviceTakesIsComputedThere) {
    LimitedDevice device({.tensor_bytes = kLimit});
    const Graph graph = GetParam().build(kFits);
    const Ran ran = run_filled(graph, as_written(device.name()));
    expect_same_outputs(graph, ran, run_filled(graph, as_written()));
    for (const NodeStats& node : ran.stats.nodes)
        EXPECT_EQ(node.device, is_for_the_cpu(node) ? "CPU" : device.name()) << node.title;
    EXPECT_THAT(device.violations(), IsEmpty());
    EXPECT_GT(device.counts().nodes, 0);
}

TEST_P(LargeTensor, ThatTheDeviceRefusesStaysOnTheCpuAndSoDoTheNodesThatNeedIt) {
    LimitedDevice device({.tensor_bytes = kLimit});
    const Graph graph = GetParam().build(kTooMany);
    const Ran ran = run_filled(graph, as_written(device.name()));
    expect_same_outputs(graph, ran, run_filled(graph, as_written()));
    std::vector<std::string> expected;
    for (const bool leaves : GetParam().leaves) expected.push_back(leaves ? "CPU" : device.name());
    EXPECT_EQ(ran.devices(), expected);
    EXPECT_THAT(device.violations(), IsEmpty());
    EXPECT_LE(device.counts().largest_tensor, kLimit);
}

/// A device may take tensors of any size, and yet have no buffer as large.
TEST_P(LargeTensor, ThatNoBufferOfTheDeviceHoldsStaysOnTheCpu) {
    LimitedDevice device({.buffer_bytes = kLimit});
    for (const std::int64_t rows : {kFits, kTooMany}) {
        SCOPED_TRACE(rows);
        const Graph graph = GetParam().build(rows);
        const Ran ran = run_filled(graph, as_written(device.name()));
        expect_same_outputs(graph, ran, run_filled(graph, as_written()));
        if (rows == kTooMany) {
            std::vector<std::string> expected;
            for (const bool leaves : GetParam().leaves) expected.push_back(leaves ? "CPU" : device.name());
            EXPECT_EQ(ran.devices(), expected);
        }
        EXPECT_EQ(device.counts().failed_allocations, 0);
        EXPECT_LE(device.counts().largest_tensor, kLimit);
    }
}

std::string role_name(const ::testing::TestParamInfo<Role>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Roles, LargeTensor, ::testing::ValuesIn(kRoles), role_name);

TEST(Placement, AConstantThatBothTheDeviceAndTheCpuReadIsWithEach) {
    for (const std::size_t limit : {kLimit, kLimit - 1}) {
        LimitedDevice device({.tensor_bytes = limit});
        TestGraph g;
        const ValueId shared = constant(g, 32, 32);
        g.output("here", on_the_cpu(g, shared));
        g.output("there", g.op("matmul", {g.input("x", {4, 32}), shared}));
        const Graph graph = g.finish();
        Session session(compile(graph, as_written(device.name())));
        const Ran ran = run_filled(session, graph);
        expect_same_outputs(graph, ran, run_filled(graph, as_written()));
        EXPECT_THAT(ran.devices(), ElementsAre("CPU", limit < kLimit ? "CPU" : device.name()));
        EXPECT_THAT(device.violations(), IsEmpty());
        device.reset_counts();
        run_filled(session, graph, 1);
        EXPECT_LT(device.counts().uploaded_bytes, kLimit);  // a constant is not sent with every run
        EXPECT_LT(device.counts().read_bytes, kLimit);
    }
}

TEST(Placement, AStateThatTheDeviceWritesStaysThere) {
    LimitedDevice device;
    TestGraph g;
    const ValueId state = g.state("s", {32, 32}), x = g.input("x", {8});
    const ValueId sums = g.op("accumulate", {state, g.op("tanh", {x})});
    g.output("y", g.op("reduce_sum", {sums}, {{"axes", std::vector<std::int64_t>{1}}}));
    const Graph graph = g.finish();
    Session session(compile(graph, as_written(device.name())));
    EXPECT_THAT(run_filled(session, graph).devices(), Each(device.name()));
    device.reset_counts();
    const Ran ran = run_filled(session, graph, 3);
    EXPECT_LT(device.counts().uploaded_bytes, 32 * 32 * 4);
    EXPECT_LT(device.counts().read_bytes, 32 * 32 * 4);
    Session here(compile(graph, as_written()));
    expect_same_outputs(graph, ran, run_filled(here, graph, 5));
    std::vector<float> there(32 * 32), expected(32 * 32);
    session.read_state("s", there.data(), there.size() * sizeof(float));
    here.read_state("s", expected.data(), expected.size() * sizeof(float));
    expect_close(there, expected, 1e-6f);
    EXPECT_THAT(device.violations(), IsEmpty());
}

TEST(Placement, WeightsInBlocksCountWithWhatTheDeviceAddsToThem) {
    TestGraph g;
    g.output("y", g.op("matmul", {g.input("x", {4, 256}), constant(g, 256, 64)}));
    const Graph graph = g.finish();
    const auto options = [](const std::string& device) {
        return CompileOptions{.device = device, .weights = WeightFormat::q8_0};
    };
    const Ran expected = run_filled(graph, options("cpu"));
    constexpr std::size_t kBlocks = 256 * 64 / 32 * 34, kPadding = 512;  // q8_0 has 34 bytes for 32 values
    for (const std::size_t limit : {kBlocks + kPadding, kBlocks}) {
        SCOPED_TRACE(limit);
        LimitedDevice device({.buffer_bytes = limit});
        const Ran ran = run_filled(graph, options(device.name()));
        expect_same_outputs(graph, ran, expected, 0.02);  // each rounds the activations in its own way
        EXPECT_THAT(ran.devices(), Each(limit == kBlocks ? "CPU" : device.name()));
        EXPECT_EQ(device.counts().failed_allocations, 0);
    }
    LimitedDevice device({.refused_types = {GGML_TYPE_Q8_0}});
    const Ran ran = run_filled(graph, options(device.name()));
    expect_same_outputs(graph, ran, expected, 0.02);
    EXPECT_THAT(ran.devices(), Each("CPU"));
    EXPECT_THAT(device.violations(), IsEmpty());
}

TEST(Placement, WhatTheDeviceRefusesRunsInThePackedKernelsOfTheCpu) {
    LimitedDevice device({.tensor_bytes = kLimit});
    const Graph graph = large_constant(kTooMany);
    const Ran ran = run_filled(graph, as_written(device.name()));
    EXPECT_EQ(ran.stats.nodes[0].implementation,
              run_filled(graph, as_written()).stats.nodes[0].implementation);
    EXPECT_NE(ran.stats.nodes[0].implementation, "ggml");
}

TEST(Placement, OutputsThatAreInputsConstantsOrViewsOfThemMayBeLargerThanTheDeviceTakes) {
    for (const std::size_t limit : {std::size_t{8}, kLimit}) {
        LimitedDevice device({.tensor_bytes = limit});
        TestGraph g;
        const ValueId x = g.input("x", {32, 32}), c = constant(g, 32, 32);
        g.output("input", g.op("identity", {x}));
        g.output("constant", c);
        g.output("same_constant", g.op("identity", {c}));
        g.output("view_of_input", reshape(g, x, {16, 64}));
        g.output("view_of_constant", reshape(g, c, {16, 64}));
        g.output("part_of_input", slice(g, x, {1, 0}, {1, 32}));
        const Graph graph = g.finish();
        for (const CompileOptions& options :
             {as_written(device.name()), CompileOptions{.device = device.name()}})
            expect_same_outputs(graph, run_filled(graph, options), run_filled(graph, as_written()), 0);
        EXPECT_THAT(device.violations(), IsEmpty());
    }
}

TEST(Placement, TensorsWithoutElementsNeedNoDevice) {
    for (const std::size_t limit : {std::size_t{0}, kLimit}) {
        LimitedDevice device({.tensor_bytes = limit});
        TestGraph g;
        const ValueId none = g.input("none", {0, 4}), some = g.input("some", {2, 4});
        const ValueId w = constant(g, 4, 4), empty = g.constant<float>({0, 4}, {});
        g.output("product", g.op("matmul", {none, w}));
        g.output("joined", g.op("concat", {g.op("tanh", {some}), none, empty}, {{"axis", std::int64_t{0}}}));
        g.output("empty", g.op("tanh", {empty}));
        const Graph graph = g.finish();
        expect_same_outputs(graph, run_filled(graph, as_written(device.name())),
                            run_filled(graph, as_written()));
        EXPECT_THAT(device.violations(), IsEmpty());
    }
}

/// Each dtype with the ops that ggml lowers for any of them, on devices that take it and that do not.
TEST(Placement, EveryDtypeIsComputedWhetherTheDeviceTakesItOrNot) {
    std::set<ggml_type> all;
    for (int t = 0; t < GGML_TYPE_COUNT; ++t) all.insert(static_cast<ggml_type>(t));
    for (const DType dtype :
         {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i8, DType::u8, DType::i16, DType::i32,
          DType::u32, DType::i64, DType::u64, DType::i4, DType::u4, DType::boolean}) {
        SCOPED_TRACE(name_of(dtype));
        TestGraph g;
        const ValueId x = g.input("x", {4, 6}, dtype);
        const SampleOperand values{.type = {dtype, {4, 6}}, .low = 0, .high = 1};
        const ValueId c = must(g.builder.constant(values.type, fill(values, 3)));
        g.output("flat", reshape(g, x, {24}));
        g.output("flat_constant", reshape(g, c, {24}));
        g.output("rows", slice(g, x, {1, 0}, {2, 6}));
        g.output("columns", slice(g, c, {0, 2}, {4, 2}));
        g.output("turned", g.op("transpose", {x}, {{"permutation", std::vector<std::int64_t>{1, 0}}}));
        g.output("joined", g.op("concat", {x, c}, {{"axis", std::int64_t{0}}}));
        g.output("real", g.op("tanh", {g.op("cast", {x}, {{"data_type", DType::f32}})}));
        const Graph graph = g.finish();
        const Ran expected = run_filled(graph, as_written());
        std::set<ggml_type> all_but_floats = all;
        all_but_floats.erase(GGML_TYPE_F32);
        for (const std::set<ggml_type>& refused : {std::set<ggml_type>{}, all_but_floats, all}) {
            LimitedDevice device({.refused_types = refused});
            expect_same_outputs(graph, run_filled(graph, as_written(device.name())), expected);
            EXPECT_THAT(device.violations(), IsEmpty());
        }
    }
}

TEST(Placement, TwoDevicesWithOtherLimitsRunTheSameGraph) {
    LimitedDevice wide({.tensor_bytes = kLimit}), narrow({.tensor_bytes = kLimit - 1});
    const Graph graph = large_intermediate(kFits);
    Session first(compile(graph, as_written(wide.name()))), second(compile(graph, as_written(narrow.name())));
    const Ran expected = run_filled(graph, as_written());
    for (int i = 0; i < 2; ++i) {
        const Ran on_wide = run_filled(first, graph), on_narrow = run_filled(second, graph);
        expect_same_outputs(graph, on_wide, expected);
        expect_same_outputs(graph, on_narrow, expected);
        EXPECT_EQ(on_wide.nodes_on(wide.name()), 4);
        EXPECT_EQ(on_narrow.nodes_on(narrow.name()), 2);
    }
    EXPECT_THAT(wide.violations(), IsEmpty());
    EXPECT_THAT(narrow.violations(), IsEmpty());
}

TEST(Placement, DevicesThatShareAGraphGetWhatAllOfThemTake) {
    LimitedDevice wide({.tensor_bytes = kLimit}), narrow({.tensor_bytes = kLimit - 1});
    const auto handle = [](const LimitedDevice& device) {
        return ggml_backend_dev_by_name(device.name().c_str());
    };
    PackedConstants packed;
    const auto nodes_on_devices = [&](std::vector<ggml_backend_device*> devices) {
        const Plan plan = must(make_plan(large_constant(kFits), {.devices = std::move(devices)}, packed));
        std::vector<bool> on_device;
        for (const NodePlan& node : plan.nodes) on_device.push_back(node.on_device);
        return on_device;
    };
    EXPECT_THAT(nodes_on_devices({}), ElementsAre(false, false));
    EXPECT_THAT(nodes_on_devices({handle(wide)}), ElementsAre(true, true));
    EXPECT_THAT(nodes_on_devices({handle(wide), handle(narrow)}), ElementsAre(false, true));
    EXPECT_THAT(nodes_on_devices({handle(narrow), handle(wide)}), ElementsAre(false, true));
}

/// Readers of a view of a state get a copy of it, which is no part of any op's lowering.
TEST(Placement, ACopyThatTheDeviceLacksIsMadeOnTheCpu) {
    for (const std::set<ggml_op>& refused : {std::set<ggml_op>{}, {GGML_OP_CONT, GGML_OP_DUP, GGML_OP_CPY}}) {
        LimitedDevice device({.refused_ops = refused});
        TestGraph g;
        const ValueId x = g.input("x", {8}), state = g.state("s", {8});
        const ValueId before = reshape(g, state, {2, 4});
        g.output("after", g.op("accumulate", {state, g.op("tanh", {x})}));
        g.output("before", g.op("add", {before, before}));
        const Graph graph = g.finish();
        expect_same_outputs(graph, run_filled(graph, as_written(device.name())),
                            run_filled(graph, as_written()));
        EXPECT_THAT(device.violations(), IsEmpty());
    }
}

TEST(Placement, EachSetOfShapesIsPlacedByItself) {
    LimitedDevice device({.tensor_bytes = kLimit});
    TestGraph g;
    const ValueId x = g.input("x", {Dim::symbolic("n", 1, 64), 32});
    g.output("y", g.op("tanh", {g.op("matmul", {x, constant(g, 32, 4)})}));
    Session session(compile(g.finish(), {.device = device.name()}));
    for (const std::int64_t rows : {kTooMany, kFits, kTooMany}) {
        const auto values = random_floats(static_cast<std::size_t>(rows * 32), 5);
        run(session, {{rows, 32}}, {values});
        EXPECT_EQ(session.stats().nodes[0].device, rows == kFits ? device.name() : "CPU");
    }
    EXPECT_THAT(device.violations(), IsEmpty());
}

}  // namespace
}  // namespace headrace
