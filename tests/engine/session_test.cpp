#include <optional>
#include <thread>

#include "temporary_folder.h"
#include "test_graph.h"

namespace headrace {
namespace {

using namespace testing;

/// y = gelu(x · w + b) on x[?, 64] -> [?, 96], as a door would build it.
Graph dense_layer(Dim rows) {
    TestGraph g;
    const ValueId x = g.input("x", {std::move(rows), 64});
    const ValueId w = g.constant<float>({64, 96}, random_floats(64 * 96, 1));
    const ValueId b = g.constant<float>({96}, random_floats(96, 2));
    g.output("y", g.op("gelu", {g.op("add", {g.op("matmul", {x, w}), b})}));
    return g.finish();
}

std::vector<float> dense_layer_by_hand(const std::vector<float>& x, std::int64_t rows) {
    const auto w = random_floats(64 * 96, 1), b = random_floats(96, 2);
    std::vector<float> y;
    for (std::int64_t i = 0; i < rows; ++i)
        for (int j = 0; j < 96; ++j) {
            double sum = b[j];
            for (int k = 0; k < 64; ++k) sum += static_cast<double>(x[i * 64 + k]) * w[k * 96 + j];
            y.push_back(static_cast<float>(0.5 * sum * (1 + std::erf(sum / std::sqrt(2.0)))));
        }
    return y;
}

const NodeStats* find_node(const RunStats& stats, const std::string& title) {
    for (const NodeStats& n : stats.nodes)
        if (n.title == title) return &n;
    return nullptr;
}

TEST(Session, RunsMatmulBiasGeluAsOnePackedGemmInGgmlsThreadPool) {
    Session session(compile(dense_layer(33), {.threads = 2}));
    const auto x = random_floats(33 * 64, 3);
    expect_close(run(session, {{33, 64}}, {x})[0], dense_layer_by_hand(x, 33), 1e-5f);
    const RunStats stats = session.stats();
    ASSERT_EQ(stats.nodes.size(), 1u);
    EXPECT_EQ(stats.nodes[0].title, "fused_matmul");
    EXPECT_EQ(stats.nodes[0].implementation, "gemm_f32");
    EXPECT_EQ(stats.ggml_nodes, 1);
}

TEST(Session, GivesTheSameThroughKernelsGgmlAndReference) {
    const auto x = random_floats(33 * 64, 3);
    const auto expected = dense_layer_by_hand(x, 33);
    Session ggml(compile(dense_layer(33), {.packed_kernels = false}));
    expect_close(run(ggml, {{33, 64}}, {x})[0], expected, 1e-5f);
    EXPECT_EQ(ggml.stats().nodes[0].implementation, "ggml");
    Session reference(compile(dense_layer(33), {.packed_kernels = false, .native_ops = false}));
    expect_close(run(reference, {{33, 64}}, {x})[0], expected, 1e-5f);
    EXPECT_EQ(reference.stats().nodes[0].implementation, "reference");
}

TEST(Session, RunsTwoSequenceLengthsThroughOneExecutable) {
    const Executable executable = compile(dense_layer(Dim::symbolic("seq", 1, 512)));
    EXPECT_EQ(executable.inputs()[0].shape, (std::vector<std::int64_t>{-1, 64}));
    EXPECT_EQ(executable.inputs()[0].dimension_names[0], "seq");
    Session session(executable);
    for (std::int64_t rows : {16, 128, 16}) {
        const auto x = random_floats(rows * 64, 4);
        expect_close(run(session, {{rows, 64}}, {x})[0], dense_layer_by_hand(x, rows), 1e-5f);
    }
    EXPECT_EQ(executable.stats().plans, 2);
    const auto packed_once = executable.stats().packed_bytes;
    EXPECT_GE(packed_once, 64u * 96 * 4);
    EXPECT_LT(packed_once, 2 * 64u * 128 * 4);
}

TEST(Session, HasNoTransformedFiltersWithLowMemory) {
    TestGraph g;
    const ValueId x = g.input("x", {1, 128, 28, 28});
    const ValueId filter = g.constant<float>({128, 128, 3, 3}, random_floats(std::size_t{128} * 128 * 9, 7));
    g.output("y", g.op("conv2d", {x, filter}, {{"padding", std::vector<std::int64_t>{1, 1, 1, 1}}}));
    const Graph graph = g.finish();
    const Executable normal = compile(graph, {.tuning = "off"}),
                     low = compile(graph, {.memory = MemoryUse::low, .tuning = "off"});
    const std::size_t plain = sizeof(float) * 128 * 128 * 9;
    EXPECT_GE(normal.stats().transformed_bytes, plain * 16 / 9);
    EXPECT_EQ(normal.stats().transformed_bytes, normal.stats().packed_bytes);
    EXPECT_EQ(low.stats().transformed_bytes, 0u);
    EXPECT_EQ(low.stats().packed_bytes, plain);
    const auto image = random_floats(std::size_t{128} * 28 * 28, 8);
    Session fast(normal), small(low);
    expect_close(run(small, {{1, 128, 28, 28}}, {image})[0], run(fast, {{1, 128, 28, 28}}, {image})[0],
                 1e-3f);
}

/// total += x; the output is the total before that.
Graph running_total(const std::string& name, std::int64_t size = 4) {
    TestGraph g;
    const ValueId x = g.input("x", {size}), total = g.state(name, {size});
    g.output("before", g.op("add", {total, g.constant<float>({1}, {0})}));
    g.op("assign", {total, g.op("add", {total, x})});
    return g.finish();
}

TEST(Session, SharesStatesOfTheSameNameAndTypeWithAnotherSession) {
    const Executable first = compile(running_total("cache")), second = compile(running_total("cache"));
    std::optional<Session> a(first);
    const Session* const sharing[] = {&*a};
    Session b(second, sharing), alone(first);
    run(*a, {{4}}, {{1, 2, 3, 4}});
    EXPECT_EQ(run(b, {{4}}, {{1, 1, 1, 1}})[0], (std::vector<float>{1, 2, 3, 4}));
    EXPECT_EQ(run(*a, {{4}}, {{0, 0, 0, 0}})[0], (std::vector<float>{2, 3, 4, 5}));
    EXPECT_EQ(run(alone, {{4}}, {{0, 0, 0, 0}})[0], (std::vector<float>{0, 0, 0, 0}));
    a.reset();  // the state lives on with the other session
    EXPECT_EQ(run(b, {{4}}, {{0, 0, 0, 0}})[0], (std::vector<float>{2, 3, 4, 5}));
}

TEST(Session, DoesNotShareStatesOfAnotherNameOrType) {
    Session a(compile(running_total("cache")));
    const Session* const sharing[] = {&a};
    run(a, {{4}}, {{1, 1, 1, 1}});
    Session other_name(compile(running_total("other")), sharing);
    Session other_type(compile(running_total("cache", 3)), sharing);
    EXPECT_EQ(run(other_name, {{4}}, {{0, 0, 0, 0}})[0], std::vector<float>(4, 0));
    EXPECT_EQ(run(other_type, {{3}}, {{0, 0, 0}})[0], std::vector<float>(3, 0));
}

TEST(Session, ARunMayHaveFewerThreadsThanTheExecutable) {
    constexpr std::int64_t kRows = 2048;  // enough that other threads are worth it
    Session session(compile(dense_layer(kRows), {.threads = 2}));
    const auto x = random_floats(kRows * 64, 3);
    std::vector<float> y(kRows * 96);
    const std::vector<std::int64_t> shape{kRows, 64};
    const InputView in[] = {{DType::f32, shape, x.data()}};
    const OutputView out[] = {{y.data(), y.size() * sizeof(float)}};
    session.run(in, out);  // the first run of little work is on one thread anyway
    session.run(in, out, {.threads = 1});
    EXPECT_EQ(session.stats().threads, 1);
    expect_close(y, dense_layer_by_hand(x, kRows), 1e-5f);
}

TEST(Session, TimesEveryNodeOfAProfiledRun) {
    for (const int threads : {1, 2}) {
        Session session(
            compile(dense_layer(64), {.threads = threads, .disabled_passes = {"fuse_matmul_epilogue"}}));
        const auto x = random_floats(64 * 64, 3);
        std::vector<float> y(64 * 96);
        const std::vector<std::int64_t> shape{64, 64};
        const InputView in[] = {{DType::f32, shape, x.data()}};
        const OutputView out[] = {{y.data(), y.size() * sizeof(float)}};
        session.run(in, out, {.profile = true});
        expect_close(y, dense_layer_by_hand(x, 64), 1e-5f);
        double end = 0;
        ASSERT_EQ(session.stats().nodes.size(), 3u);
        for (const NodeStats& node : session.stats().nodes) {
            EXPECT_GT(node.duration_us, 0) << node.title;
            EXPECT_GE(node.start_us, end) << node.title;
            end = node.start_us + node.duration_us;
        }
    }
}

TEST(Session, TwoSessionsOfOneExecutableRunInTwoThreads) {
    const Executable executable = compile(dense_layer(Dim::symbolic("seq", 1, 512)), {.threads = 2});
    std::vector<std::string> failures(2);
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t)
        threads.emplace_back([&, t] {
            Session session(executable);
            for (int i = 0; i < 30; ++i) {
                const std::int64_t rows = 8 + 16 * ((i + t) % 3);
                const auto x = random_floats(rows * 64, 10 + t);
                const auto y = run(session, {{rows, 64}}, {x})[0];
                const auto expected = dense_layer_by_hand(x, rows);
                for (std::size_t k = 0; k < y.size(); ++k)
                    if (std::abs(y[k] - expected[k]) > 1e-4f)
                        failures[t] = "wrong value at " + std::to_string(k);
            }
        });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(failures, (std::vector<std::string>{"", ""}));
}

TEST(Session, AStatePersistsBetweenRunsAndIsIsolatedBetweenSessions) {
    TestGraph g;
    const ValueId x = g.input("x", {4});
    const ValueId total = g.state("total", {4});
    g.output("sum", g.op("accumulate", {total, x}));
    const Executable executable = compile(g.finish());
    Session first(executable), second(executable);
    EXPECT_EQ(run(first, {{4}}, {{1, 2, 3, 4}})[0], (std::vector<float>{1, 2, 3, 4}));
    EXPECT_EQ(run(first, {{4}}, {{1, 1, 1, 1}})[0], (std::vector<float>{2, 3, 4, 5}));
    EXPECT_EQ(run(second, {{4}}, {{5, 5, 5, 5}})[0], (std::vector<float>{5, 5, 5, 5}));
    std::vector<float> held(4);
    first.read_state("total", held.data(), 16);
    EXPECT_EQ(held, (std::vector<float>{2, 3, 4, 5}));
    first.reset_states();
    EXPECT_EQ(run(first, {{4}}, {{1, 1, 1, 1}})[0], (std::vector<float>{1, 1, 1, 1}));
}

TEST(Session, AViewOfAStateKeepsWhatItShowedBeforeAWrite) {
    for (const bool native : {true, false}) {
        TestGraph g;
        const ValueId x = g.input("x", {4});
        const ValueId total = g.state("total", {4});
        const ValueId before = g.op("reshape", {total}, {{"new_shape", Shape{2, 2}}});
        g.output("after", g.op("accumulate", {total, x}));
        g.output("before", before);
        g.output("twice", g.op("add", {before, before}));
        Session session(compile(g.finish(), {.native_ops = native}));
        run(session, {{4}}, {{1, 2, 3, 4}});
        const auto out = run(session, {{4}}, {{1, 1, 1, 1}});
        EXPECT_EQ(out[0], (std::vector<float>{2, 3, 4, 5}));
        EXPECT_EQ(out[1], (std::vector<float>{1, 2, 3, 4}));
        EXPECT_EQ(out[2], (std::vector<float>{2, 4, 6, 8}));
    }
}

TEST(Session, AShapeComputedFromASymbolCanBeNamedInALaterReshape) {
    TestGraph g;
    const ValueId x = g.input("x", {1, 1, Dim::symbolic("h", 3, 100), 4});
    const ValueId pooled = g.op("max_pool2d", {x}, {{"window_dimensions", std::vector<std::int64_t>{3, 1}}});
    const Dim rows = g.builder.type(pooled).shape[2];
    EXPECT_TRUE(rows.is_symbolic());
    g.output("y", g.op("reshape", {pooled}, {{"new_shape", Shape{rows, 4}}}));
    Session session(compile(g.finish()));
    const std::vector<std::vector<std::int64_t>> shapes{{1, 1, 7, 4}};
    EXPECT_EQ(session.output_shapes(shapes)[0], (std::vector<std::int64_t>{5, 4}));
}

TEST(Session, FiveDimensionsPassThroughArithmeticAndTransposition) {
    TestGraph g;
    const ValueId x = g.input("x", {2, 1, 3, 2, 2});
    const ValueId y = g.input("y", {3, 1, 2});
    const ValueId sum = g.op("add", {x, y});
    g.output("z", g.op("transpose", {sum}, {{"permutation", std::vector<std::int64_t>{4, 0, 2, 1, 3}}}));
    Session session(compile(g.finish()));
    std::vector<float> a(24), b(6);
    for (int i = 0; i < 24; ++i) a[i] = static_cast<float>(i);
    for (int i = 0; i < 6; ++i) b[i] = static_cast<float>(100 * i);
    const auto z = run(session, {{2, 1, 3, 2, 2}, {3, 1, 2}}, {a, b})[0];
    std::size_t at = 0;
    for (int e = 0; e < 2; ++e)
        for (int n = 0; n < 2; ++n)
            for (int r = 0; r < 3; ++r)
                for (int s = 0; s < 2; ++s)
                    EXPECT_EQ(z[at++], a[((n * 3 + r) * 2 + s) * 2 + e] + b[r * 2 + e]);
}

TEST(Session, UnsignedIntegersPassThroughExactly) {
    TestGraph g;
    const ValueId x = g.input("x", {3}, DType::u32);
    const ValueId y = g.input("y", {3}, DType::u32);
    g.output("z", g.op("add", {x, y}));
    Session session(compile(g.finish()));
    const std::vector<std::uint32_t> a{4000000000u, 1, 4294967295u}, b{7, 2, 1};
    std::vector<std::uint32_t> z(3);
    const std::vector<std::int64_t> shape{3};
    const InputView in[] = {{DType::u32, shape, a.data()}, {DType::u32, shape, b.data()}};
    const OutputView out[] = {{z.data(), 12}};
    session.run(in, out);
    EXPECT_EQ(z, (std::vector<std::uint32_t>{4000000007u, 3, 0}));
}

TEST(Session, WeightsOfALoadedGraphAreTheFilesPages) {
    const TemporaryFolder folder;
    const std::string path = folder / "weights.hrg";
    save_graph(dense_layer(5), path);
    const auto x = random_floats(5 * 64, 6);
    const auto graph = load_graph(path);
    const Executable executable = compile(*graph, {.packed_kernels = false});
    EXPECT_EQ(executable.stats().mapped_bytes, executable.stats().constant_bytes);
    EXPECT_EQ(executable.stats().mapped_bytes, 4u * (64 * 96 + 96));
    Session session(executable);
    expect_close(run(session, {{5, 64}}, {x})[0], dense_layer_by_hand(x, 5), 1e-5f);
}

TEST(Session, BindsAlignedCallerMemoryAndCopiesTheRest) {
    TestGraph g;
    const ValueId x = g.input("x", {4});
    g.output("y", g.op("relu", {x}));
    Session session(compile(g.finish()));
    alignas(64) std::byte raw[64] = {};
    alignas(64) float y[4];
    const float values[4] = {-1, 2, -3, 4};
    const std::vector<std::int64_t> shape{4};
    for (const std::size_t offset : {0, 1}) {
        std::memcpy(raw + offset, values, 16);
        const InputView in[] = {{DType::f32, shape, raw + offset}};
        const OutputView out[] = {{y, 16}};
        session.run(in, out);
        EXPECT_EQ(std::vector<float>(y, y + 4), (std::vector<float>{0, 2, 0, 4}));
        EXPECT_EQ(session.stats().inputs_bound, offset == 0 ? 1 : 0);
        EXPECT_EQ(session.stats().outputs_copied, 0);
    }
}

TEST(Session, AnInputOrConstantMayBeAnOutputAndAValueTwoOutputs) {
    TestGraph g;
    const ValueId x = g.input("x", {2});
    const ValueId y = g.op("neg", {x});
    g.output("y", y);
    g.output("again", y);
    g.output("x", x);
    g.output("c", g.constant<float>({2}, {7, 8}));
    g.output("flat", g.op("reshape", {y}, {{"new_shape", Shape{2, 1}}}));
    Session session(compile(g.finish()));
    const auto out = run(session, {{2}}, {{1, -2}});
    const std::vector<std::vector<float>> expected{{-1, 2}, {-1, 2}, {1, -2}, {7, 8}, {-1, 2}};
    EXPECT_EQ(out, expected);
}

TEST(Session, ReusesActivationMemory) {
    TestGraph g;
    ValueId v = g.input("x", {1000});
    for (int i = 0; i < 20; ++i) v = g.op(i % 2 ? "tanh" : "atan", {v});
    g.output("y", v);
    Session session(compile(g.finish()));
    run(session, {{1000}}, {random_floats(1000, 1)});
    const RunStats stats = session.stats();
    EXPECT_EQ(stats.naive_bytes, 19u * 4000);
    EXPECT_LE(stats.arena_bytes, 3u * 4096);
    EXPECT_EQ(find_node(stats, "atan")->implementation, "one_pass");
}

TEST(Session, WrongOperandsAreNamedWithWhatIsRight) {
    Session session(compile(dense_layer(Dim::symbolic("seq", 1, 128))));
    std::vector<float> x(200 * 64), y(200 * 96);
    const auto call = [&](std::vector<InputView> in, std::vector<OutputView> out) {
        return message_of([&] { session.run(in, out); }, Code::invalid_argument);
    };
    const std::vector<std::int64_t> good{2, 64}, wide{2, 65}, flat{64}, many{200, 64};
    EXPECT_EQ(call({}, {}), "0 inputs given, the graph has 1");
    EXPECT_EQ(call({{DType::f16, good, x.data()}}, {}), "input 'x' is f16, the graph declares f32[seq, 64]");
    EXPECT_EQ(call({{DType::f32, wide, x.data()}}, {}),
              "input 'x' has shape [2, 65], the graph declares [seq, 64]");
    EXPECT_EQ(call({{DType::f32, flat, x.data()}}, {}),
              "input 'x' has shape [64], the graph declares [seq, 64]");
    EXPECT_EQ(call({{DType::f32, many, x.data()}}, {}),
              "input 'x': seq (dimension 0) is 200; at most 128 is possible");
    EXPECT_EQ(call({{DType::f32, good, nullptr}}, {{y.data(), 768}}), "input 'x' has no data");
    EXPECT_EQ(call({{DType::f32, good, x.data()}}, {{y.data(), 8}}),
              "output 'y': 8 bytes of memory given, f32[2, 96] needs 768");
    EXPECT_EQ(call({{DType::f32, good, x.data()}}, {}), "0 outputs given, the graph has 1");
}

/// y = x · w and z = -x on x[4, 4]: y is complete long before all of x has been read.
Graph product_and_negation() {
    TestGraph g;
    const ValueId x = g.input("x", {4, 4});
    g.output("y", g.op("matmul", {x, g.constant<float>({4, 4}, random_floats(16, 5))}));
    g.output("z", g.op("neg", {x}));
    return g.finish();
}

TEST(Session, AnOutputMayLieWhereAnInputDoes) {
    Session session(compile(product_and_negation()));
    const auto x = random_floats(16, 6);
    const auto expected = run(session, {{4, 4}}, {x});
    const std::vector<std::int64_t> shape{4, 4};
    for (const int shift : {-15, -3, 0, 7, 15}) {  // of y against x
        std::vector<float> memory(64);
        float* const in = memory.data() + 16;
        std::copy(x.begin(), x.end(), in);
        std::vector<float> z(16);
        const InputView inputs[] = {{DType::f32, shape, in}};
        const OutputView outputs[] = {{in + shift, 64}, {z.data(), 64}};
        session.run(inputs, outputs);
        EXPECT_EQ(std::vector<float>(in + shift, in + shift + 16), expected[0]) << shift;
        EXPECT_EQ(z, expected[1]) << shift;
    }
}

TEST(Session, OutputsThatOverlapEachOtherAreRefused) {
    Session session(compile(product_and_negation()));
    std::vector<float> memory(64, 1.0f);
    const std::vector<std::int64_t> shape{4, 4};
    const InputView in[] = {{DType::f32, shape, memory.data()}};
    const OutputView out[] = {{memory.data() + 16, 64}, {memory.data() + 31, 64}};
    EXPECT_EQ(message_of([&] { session.run(in, out); }, Code::invalid_argument),
              "output 'z' overlaps the memory of output 'y'");
    EXPECT_EQ(memory, std::vector<float>(64, 1.0f));
}

TEST(Compile, NamesUnknownDevicesAndPasses) {
    EXPECT_NE(message_of([] { compile(dense_layer(1), {.device = "TPU9"}); }, Code::invalid_argument)
                  .find("there is no device 'TPU9'; known: cpu"),
              std::string::npos);
    EXPECT_NE(
        message_of([] { compile(dense_layer(1), {.disabled_passes = {"fuze"}}); }, Code::invalid_argument)
            .find("fuze"),
        std::string::npos);
    EXPECT_NE(message_of([] { compile(dense_layer(1), {.threads = -1}); }, Code::invalid_argument).find("-1"),
              std::string::npos);
}

}  // namespace
}  // namespace headrace
