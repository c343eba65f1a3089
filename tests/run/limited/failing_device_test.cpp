/// Devices that have no memory left, or fail.
#include <gmock/gmock.h>

#include "run/limited/filled_run.h"
#include "run/limited/limited_device.h"

namespace headrace {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Layers of 4,096 bytes of weights each.
Graph layers(int count) {
    TestGraph g;
    ValueId v = g.input("x", {8, 32});
    for (int i = 0; i < count; ++i) {
        const ValueId w = g.constant<float>({32, 32}, random_floats(32 * 32, static_cast<unsigned>(i)));
        v = g.op("tanh", {g.op("matmul", {v, w})});
    }
    g.output("y", v);
    return g.finish();
}

TEST(FailingDevice, WithoutMemoryForTheWeightsIsAnErrorThatNamesItTheBytesAndTheRemedy) {
    LimitedDevice device;
    const Graph graph = layers(4);
    const Executable executable = compile(graph, {.device = device.name()});
    device.limits().memory_bytes = 10000;  // others have taken it since
    Session session(executable);
    for (int i = 0; i < 2; ++i) {
        const auto message = message_of([&] { run_filled(session, graph); }, Code::out_of_memory);
        EXPECT_THAT(message, AllOf(HasSubstr(device.name()), HasSubstr("4096 bytes"), HasSubstr("8192 bytes"),
                                   HasSubstr("q8_0"), HasSubstr("'cpu'")));
        EXPECT_EQ(device.bytes_in_use(), 0u);  // nor are the weights kept that had found room
    }
    device.limits().memory_bytes = 1 << 20;
    const Ran ran = run_filled(session, graph);
    expect_same_outputs(graph, ran, run_filled(graph, {}));
    EXPECT_THAT(ran.devices(), Each(device.name()));
}

TEST(FailingDevice, WithoutMemoryForTheActivationsIsAnErrorThatNamesItTheBytesAndTheRemedy) {
    LimitedDevice device;
    const Graph graph = layers(4);
    Session session(compile(graph, {.device = device.name()}));
    device.limits().memory_bytes = 4 * 4096 + 512;  // others have taken it since
    for (int i = 0; i < 2; ++i) {
        const auto message = message_of([&] { run_filled(session, graph); }, Code::out_of_memory);
        EXPECT_THAT(message, AllOf(HasSubstr(device.name()), HasSubstr("activations"), HasSubstr(" bytes"),
                                   HasSubstr("the largest is that of "), HasSubstr("'cpu'")));
    }
    device.limits().memory_bytes = 1 << 20;
    expect_same_outputs(graph, run_filled(session, graph), run_filled(graph, {}));
}

TEST(FailingDevice, AGraphThatIsLargerThanItsMemoryIsCutOnceAndTheRestRunsOnTheCpu) {
    LimitedDevice device({.memory_bytes = 200000});  // of which nine tenths are for weights of 4096: 43
    TestGraph g;
    ValueId v = g.input("x", {8, 32});
    for (unsigned i = 0; i < 60; ++i) {
        auto weights = random_floats(32 * 32, i);
        for (float& w : weights)
            w *= 0.1f;  // or differences in the last place would grow from layer to layer
        v = g.op("tanh", {g.op("matmul", {v, g.constant<float>({32, 32}, weights)})});
    }
    g.output("y", v);
    const Graph graph = g.finish();
    const Ran ran = run_filled(graph, {.device = device.name(), .threads = 1});
    expect_same_outputs(graph, ran, run_filled(graph, {.threads = 1}));
    const auto devices = ran.devices();
    EXPECT_GE(ran.nodes_on(device.name()), 43);
    EXPECT_GE(ran.nodes_on("CPU"), 17);
    EXPECT_TRUE(std::ranges::is_sorted(devices, std::greater())) << "the device's nodes, then the CPU's";
    EXPECT_EQ(device.bytes_in_use(), 0u);
}

/// ggml cuts activations that are larger than the device's largest buffer into several.
TEST(FailingDevice, ActivationsMayTakeSeveralBuffers) {
    TestGraph g;
    const ValueId x = g.input("x", {32, 32});
    std::vector<ValueId> kept;
    for (int i = 0; i < 40; ++i) kept.push_back(g.op("tanh", {i ? kept.back() : x}));
    ValueId sum = kept.back();
    for (std::size_t i = 0; i + 1 < kept.size(); ++i) sum = g.op("add", {sum, kept[i]});
    g.output("y", sum);
    const Graph graph = g.finish();
    const Ran expected = run_filled(graph, {});
    LimitedDevice device({.buffer_bytes = 4 * 4096});
    const Ran ran = run_filled(graph, {.device = device.name()});
    expect_same_outputs(graph, ran, expected);
    EXPECT_THAT(ran.devices(), Each(device.name()));
    EXPECT_GT(device.counts().buffers, 8);
    // It never uses more than 16 of them; the last would have to be larger than the device has any.
    device.limits().buffer_bytes = 2 * 4096;
    const auto message =
        message_of([&] { run_filled(graph, {.device = device.name()}); }, Code::out_of_memory);
    EXPECT_THAT(message, HasSubstr(device.name()));
    EXPECT_EQ(device.bytes_in_use(), 0u);
}

TEST(FailingDevice, AStatusOfTheDeviceIsAnErrorOfTheRun) {
    LimitedDevice device;
    const Graph graph = layers(2);
    Session session(compile(graph, {.device = device.name()}));
    const Ran expected = run_filled(graph, {});
    for (const auto& [status, code] : {std::pair(GGML_STATUS_FAILED, Code::backend_failure),
                                       std::pair(GGML_STATUS_ALLOC_FAILED, Code::out_of_memory)}) {
        device.limits().compute_status = status;
        EXPECT_THAT(message_of([&] { run_filled(session, graph); }, code), HasSubstr(device.name()));
        device.limits().compute_status = GGML_STATUS_SUCCESS;
        expect_same_outputs(graph, run_filled(session, graph), expected);
    }
}

TEST(FailingDevice, AnExceptionOfTheDriverIsAnErrorOfTheRun) {
    LimitedDevice device({.throws_in_upload = true});
    const Graph graph = layers(2);
    Session session(compile(graph, {.device = device.name()}));
    const auto expect_error = [&](const RunOptions& options) {
        const Filled filled(graph);
        std::vector<float> y(8 * 32);
        const std::vector<OutputView> outputs{{y.data(), y.size() * sizeof(float)}};
        EXPECT_THAT(message_of([&] { session.run(filled.inputs, outputs, options); }, Code::backend_failure),
                    AllOf(HasSubstr(device.name()), HasSubstr("the driver lost the device")));
    };
    expect_error({});
    EXPECT_EQ(device.bytes_in_use(), 0u);  // or the weights would be taken for uploaded
    device.limits().throws_in_upload = false;
    const Ran expected = run_filled(graph, {});
    expect_same_outputs(graph, run_filled(session, graph), expected);
    for (const bool profile : {false, true}) {
        device.limits().throws_in_compute = true;
        expect_error({.profile = profile});
        device.limits().throws_in_compute = false;
        expect_same_outputs(graph, run_filled(session, graph), expected);
    }
}

/// ggml's scheduler ends the process when it has no place for all nodes and leaves of a graph.
TEST(FailingDevice, AnyNumberOfStatesHasAPlaceBesideTheDevice) {
    LimitedDevice device;
    for (const int count : {50, 100, 190, 250, 400}) {
        TestGraph g;
        const ValueId x = g.op("tanh", {g.input("x", {2})});
        for (int i = 0; i < count; ++i)
            g.output("y" + std::to_string(i), g.op("accumulate", {g.state("s" + std::to_string(i), {2}), x}));
        const Graph graph = g.finish();
        expect_same_outputs(graph, run_filled(graph, {.device = device.name(), .threads = 1}),
                            run_filled(graph, {.threads = 1}));
    }
    EXPECT_THAT(device.violations(), IsEmpty());
}

/// A quarter of the values come from the CPU, which has the op that the device lacks. The odd ones are read
/// last: more pieces of memory are free between them meanwhile than ggml's allocator can note.
TEST(FailingDevice, AnyNumberOfValuesMayBeAliveAtOnce) {
    for (const int count : {50, 150, 800}) {
        SCOPED_TRACE(count);
        TestGraph g;
        const ValueId x = g.input("x", {8});
        std::vector<ValueId> here, there;
        for (int i = 0; i < count; ++i) {
            const ValueId c = g.constant<float>({8}, random_floats(8, static_cast<unsigned>(i)));
            there.push_back(g.op("mul", {x, c}));
            if (i % 4 == 0) here.push_back(on_the_cpu(g, there.back()));
        }
        ValueId sum = here[0];
        for (const auto& values : {here, there})
            for (const std::size_t first : {0, 1})
                for (std::size_t i = first; i < values.size(); i += 2) sum = g.op("add", {sum, values[i]});
        g.output("y", sum);
        const Graph graph = g.finish();
        LimitedDevice device;
        expect_same_outputs(graph, run_filled(graph, {.device = device.name(), .threads = 1}),
                            run_filled(graph, {.threads = 1}));
    }
}

/// All inputs are first read in the order of their numbers; last in that order, or the even ones before the
/// odd ones. They are outputs, too, so that they lie on the host.
Graph sum_of_inputs(int count, bool in_order) {
    TestGraph g;
    std::vector<ValueId> inputs, terms;
    for (int i = 0; i < count; ++i) inputs.push_back(g.input("x" + std::to_string(i), {8}));
    for (const ValueId input : inputs) terms.push_back(g.op("tanh", {input}));
    const auto read = [&](int i) { terms.push_back(g.op("sigmoid", {inputs[static_cast<std::size_t>(i)]})); };
    for (int i = 0; i < count; i += in_order ? 1 : 2) read(i);
    for (int i = 1; !in_order && i < count; i += 2) read(i);
    ValueId sum = terms[0];
    for (const ValueId term : terms) sum = g.op("add", {sum, term});
    g.output("y", sum);
    for (int i = 0; i < count; ++i)
        g.output("given" + std::to_string(i), inputs[static_cast<std::size_t>(i)]);
    return g.finish();
}

TEST(FailingDevice, AnyNumberOfInputsIsSentThereOrRefusedWhereGgmlWouldEndTheProcess) {
    LimitedDevice device;
    const Graph in_order = sum_of_inputs(600, true), mixed = sum_of_inputs(600, false);
    const Ran ran = run_filled(in_order, {.device = device.name(), .threads = 1});
    expect_same_outputs(in_order, ran, run_filled(in_order, {.threads = 1}));
    EXPECT_THAT(ran.devices(), Each(device.name()));
    const auto message =
        message_of([&] { run_filled(mixed, {.device = device.name(), .threads = 1}); }, Code::unsupported);
    EXPECT_THAT(message, AllOf(HasSubstr("values go from one device"), HasSubstr("'cpu'")));
}

}  // namespace
}  // namespace headrace
