/// Tensors between runs on a device: what is copied, and what is right wherever it was written last.
#include <gmock/gmock.h>

#include "headrace/tensor.h"
#include "headrace/webnn.h"
#include "run/limited/filled_run.h"
#include "run/limited/limited_device.h"

namespace headrace {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using Values = std::vector<float>;

constexpr std::size_t kBytes = 4 * sizeof(float);

/// y = x + 1
Graph counting() {
    TestGraph g;
    g.output("y", g.op("add", {g.input("x", {4}), g.constant<float>({4}, {1, 1, 1, 1})}));
    return g.finish();
}

void write(Tensor& tensor, const Values& values) { tensor.write(values.data(), kBytes); }
Values read(const Tensor& tensor) {
    Values values(4);
    tensor.read(values.data(), kBytes);
    return values;
}
RunStats run_on(Session& session, const Tensor& x, Tensor& y) {
    const InputView in[] = {x.input()};
    const OutputView out[] = {y.output()};
    session.run(in, out);
    return session.stats();
}

TEST(DeviceTensors, RunsThatFollowOneAnotherCopyNothing) {
    LimitedDevice device;
    Session session(compile(counting(), {.device = device.name()}));
    Tensor a(DType::f32, {4}), b(DType::f32, {4});
    write(a, {1, 2, 3, 4});
    EXPECT_EQ(run_on(session, a, b).copies, 1) << "what the host has written goes there";
    EXPECT_TRUE(b.is_on_device());
    run_on(session, b, a);
    device.reset_counts();
    for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(run_on(session, a, b).copied_bytes, 0u);
        EXPECT_EQ(run_on(session, b, a).copies, 0);
    }
    EXPECT_EQ(device.counts().uploaded_bytes + device.counts().read_bytes, 0u);
    EXPECT_EQ(read(a), (Values{11, 12, 13, 14}));
    EXPECT_EQ(device.counts().read_bytes, kBytes);
    EXPECT_THAT(device.violations(), ::testing::IsEmpty());
}

TEST(DeviceTensors, HaveWhatTheHostWritesBetweenRuns) {
    LimitedDevice device;
    Session session(compile(counting(), {.device = device.name()}));
    Tensor a(DType::f32, {4}), b(DType::f32, {4});
    run_on(session, a, b);
    EXPECT_EQ(read(b), (Values{1, 1, 1, 1})) << "a new tensor is zeros";
    write(a, {5, 6, 7, 8});
    EXPECT_EQ(run_on(session, a, b).copies, 0) << "it was written on the device, where runs read it";
    EXPECT_EQ(read(b), (Values{6, 7, 8, 9}));
    EXPECT_EQ(read(a), (Values{5, 6, 7, 8}));
}

TEST(DeviceTensors, AreSharedWithSessionsOnTheCpu) {
    LimitedDevice device;
    const Graph graph = counting();
    Session there(compile(graph, {.device = device.name()})), here(compile(graph));
    run(here, {{4}}, {{0, 0, 0, 0}});
    const std::int64_t of_its_own = here.stats().copies;
    Tensor a(DType::f32, {4}), b(DType::f32, {4});
    for (int i = 0; i < 3; ++i) {
        run_on(there, a, b);
        EXPECT_EQ(run_on(here, b, a).copies, of_its_own + 1);
        EXPECT_FALSE(a.is_on_device());
    }
    EXPECT_EQ(read(a), (Values{6, 6, 6, 6}));
    EXPECT_EQ(run_on(here, a, b).copies, of_its_own);
}

TEST(DeviceTensors, MayBeInputAndOutputOfOneRun) {
    LimitedDevice device;
    Session session(compile(counting(), {.device = device.name()}));
    Tensor a(DType::f32, {4});
    for (int i = 0; i < 3; ++i) run_on(session, a, a);
    EXPECT_EQ(read(a), (Values{3, 3, 3, 3}));
}

TEST(DeviceTensors, AndMemoryOfTheHostTakeTurnsInOneSession) {
    LimitedDevice device;
    Session session(compile(counting(), {.device = device.name()}));
    Tensor a(DType::f32, {4}), b(DType::f32, {4});
    for (int i = 0; i < 2; ++i) {
        const float more = static_cast<float>(i);
        write(a, {more, 0, 0, 0});
        run_on(session, a, b);
        EXPECT_EQ(run(session, {{4}}, {{7, 8, 9, 10}})[0], (Values{8, 9, 10, 11}));
        EXPECT_EQ(session.stats().copies, 2) << "an input and an output of the host's";
        EXPECT_EQ(read(b), (Values{more + 1, 1, 1, 1}));
    }
}

/// A graph that is cut has an input that both read, one that only the CPU reads, and outputs that are the
/// other's operands, an input, a view, and one value twice.
TEST(DeviceTensors, GoWhereAGraphThatIsCutWantsThem) {
    TestGraph g;
    const ValueId x = g.input("x", {4}), y = g.input("y", {4});
    const ValueId both = g.op("add", {g.op("tanh", {x}), g.op("exp", {x})});
    const ValueId here = g.op("exp", {y});
    g.output("both", both);
    g.output("here", here);
    g.output("sum", g.op("add", {both, here}));
    g.output("given", x);
    g.output("rows", g.op("reshape", {both}, {{"new_shape", std::vector<std::int64_t>{2, 2}}}));
    const Graph graph = g.finish();
    LimitedDevice device({.refused_ops = {GGML_OP_UNARY}});
    Session there(compile(graph, {.device = device.name()})), cpu(compile(graph));
    Tensor in_x(DType::f32, {4}), in_y(DType::f32, {4});
    for (int round = 0; round < 3; ++round) {
        write(in_x, {0.5f, static_cast<float>(round), -1, 2});
        write(in_y, {1, -2, static_cast<float>(-round), 0});
        std::vector<Values> found[2];
        for (Session* session : {&there, &cpu}) {
            std::vector<Tensor> outputs;
            for (const TensorInfo& info : compile(graph).outputs())
                outputs.emplace_back(DType::f32, info.shape);
            std::vector<OutputView> out;
            for (Tensor& tensor : outputs) out.push_back(tensor.output());
            const InputView in[] = {in_x.input(), in_y.input()};
            session->run(in, out);
            for (const Tensor& tensor : outputs) found[session == &cpu].push_back(read(tensor));
        }
        for (std::size_t i = 0; i < found[0].size(); ++i) expect_close(found[0][i], found[1][i], 1e-6f);
    }
    EXPECT_THAT(device.violations(), ::testing::IsEmpty());
}

TEST(DeviceTensors, WithoutMemoryThereAreAnErrorThatNamesThemTheBytesAndTheRemedy) {
    LimitedDevice device;
    TestGraph g;
    g.output("y", g.op("tanh", {g.op("tanh", {g.input("x", {1000})})}));
    Session session(compile(g.finish(), {.device = device.name()}));
    device.limits().memory_bytes = 4000 + 4000 + 256;  // what the graph needs for itself, and one of two
    Tensor a(DType::f32, {1000}), b(DType::f32, {1000});
    EXPECT_THAT(message_of([&] { run_on(session, a, b); }, Code::out_of_memory),
                AllOf(HasSubstr(device.name()), HasSubstr("a tensor of 4000 bytes"), HasSubstr("'cpu'")));
    const Values x(1000);
    EXPECT_THAT(message_of([&] { run(session, {{1000}}, {x}); }, Code::out_of_memory),
                AllOf(HasSubstr(device.name()), HasSubstr("input 'x' of 4000 bytes"), HasSubstr("'cpu'")));
    device.limits().memory_bytes = SIZE_MAX;
    run_on(session, a, b);
    EXPECT_TRUE(b.is_on_device());
}

TEST(DeviceTensors, OfAnotherSizeAreRefused) {
    Session session(compile(counting()));
    Tensor a(DType::f32, {4}), large(DType::f32, {5});
    InputView in[] = {large.input()};
    in[0].shape = a.shape();
    const OutputView out[] = {a.output()};
    EXPECT_THAT(message_of([&] { session.run(in, out); }, Code::invalid_argument),
                HasSubstr("input 'x' is a tensor of 20 bytes, its shape takes 16"));
    Values values(4);
    EXPECT_THAT(message_of([&] { large.read(values.data(), kBytes); }, Code::invalid_argument),
                HasSubstr("16 bytes given, the tensor has 20"));
}

TEST(DeviceTensors, OfWebnnStayThereFromDispatchToDispatch) {
    LimitedDevice device;
    const webnn::MLContext context({.device = device.name()});
    webnn::MLGraphBuilder builder(context);
    const auto x = builder.input("x", {DType::f32, {4}});
    const auto graph = builder.build({{"y", builder.add(x, builder.constant(DType::f32, 1.0))}});
    const auto tensor = [&] {
        return context.createTensor(
            {.dataType = DType::f32, .shape = {4}, .readable = true, .writable = true});
    };
    const webnn::MLTensor a = tensor(), b = tensor();
    const Values start{1, 2, 3, 4};
    context.writeTensor(a, start.data(), kBytes);
    for (int i = 0; i < 10; ++i) {
        context.dispatch(graph, {{"x", i % 2 ? b : a}}, {{"y", i % 2 ? a : b}});
        EXPECT_EQ(graph.runStats().copies, i == 0 ? 1 : 0);
    }
    context.dispatchBound(graph, {{"x", a}}, {{"y", a}});
    device.reset_counts();
    for (int i = 0; i < 9; ++i) context.dispatchBound(graph, {{"x", a}}, {{"y", a}});
    EXPECT_EQ(device.counts().uploaded_bytes + device.counts().read_bytes, 0u);
    EXPECT_EQ(device.counts().buffers, 0) << "two that are there already take turns";
    Values values(4);
    context.readTensor(a, values.data(), kBytes);
    EXPECT_EQ(values, (Values{21, 22, 23, 24}));
}

}  // namespace
}  // namespace headrace
