/// Where sessions take their memory, and which plans they keep.
#include <thread>

#include "test_graph.h"

namespace headrace {
namespace {

using namespace testing;

/// Three products on x[rows, 256]: activations of rows KiB each.
Graph chain(Dim rows) {
    TestGraph g;
    ValueId x = g.input("x", {std::move(rows), 256});
    const ValueId w = g.constant<float>({256, 256}, random_floats(256 * 256, 1));
    for (int i = 0; i < 3; ++i) x = g.op("softmax", {g.op("matmul", {x, w})}, {{"axis", std::int64_t{1}}});
    g.output("y", x);
    return g.finish();
}

std::vector<float> run_rows(Session& session, std::int64_t rows, const RunOptions& options = {}) {
    const auto x = random_floats(static_cast<std::size_t>(rows) * 256, 7);
    std::vector<float> y(x.size());
    const std::vector<std::int64_t> shape{rows, 256};
    session.run({{{DType::f32, shape, x.data()}}}, {{{y.data(), y.size() * 4}}}, options);
    return y;
}

TEST(SessionMemory, ActivationsGoBackToThePoolAfterEachRun) {
    const Executable executable = compile(chain(512));
    Session first(executable), second(executable);
    const auto y = run_rows(first, 512);
    for (int i = 0; i < 9; ++i) EXPECT_EQ(run_rows(i % 2 ? first : second, 512), y);
    const BufferStats stats = executable.buffers().stats();
    EXPECT_EQ(stats.allocations, 1);  // two sessions that take turns need one arena
    EXPECT_EQ(stats.reuses, 9);
    EXPECT_EQ(stats.live_bytes, 0u);
    EXPECT_GE(stats.idle_bytes, first.stats().arena_bytes);
}

TEST(SessionMemory, WithoutRoomForTheActivationsTheNodeOfTheLargestIsNamed) {
    TestGraph g;
    const ValueId wide = g.constant<float>({256, 1024}, random_floats(256 * 1024, 1));
    const ValueId narrow = g.constant<float>({1024, 256}, random_floats(1024 * 256, 2));
    const ValueId hidden =
        g.op("softmax", {g.op("matmul", {g.input("x", {512, 256}), wide})}, {{"axis", std::int64_t{1}}});
    g.output("y", g.op("matmul", {hidden, narrow}));
    CompileOptions options;
    options.buffers = std::make_shared<BufferPool>(16, SIZE_MAX, std::size_t{1} << 20);
    Session session(compile(g.finish(), options));
    try {
        run_rows(session, 512);
        FAIL() << "2 MiB were found in 1";
    } catch (const Exception& error) {
        EXPECT_EQ(error.code(), Code::out_of_memory);
        EXPECT_TRUE(std::string(error.what()).ends_with("; the largest is that of matmul, of 2097152 bytes"))
            << error.what();
    }
}

TEST(SessionMemory, ARunWithoutReuseAllocatesAndKeepsNothing) {
    const Executable executable = compile(chain(512));
    Session session(executable);
    const auto y = run_rows(session, 512);
    executable.buffers().reset();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(run_rows(session, 512, {.reuse_buffers = false}), y);
    const BufferStats stats = executable.buffers().stats();
    EXPECT_EQ(stats.allocations, 4);
    EXPECT_EQ(stats.idle_bytes, 0u);
    EXPECT_EQ(stats.live_bytes, 0u);
}

TEST(SessionMemory, ExecutablesShareAPoolThatTheOptionsName) {
    const auto pool = std::make_shared<BufferPool>();
    Session a(compile(chain(512), {.buffers = pool})), b(compile(chain(512), {.buffers = pool}));
    EXPECT_EQ(run_rows(a, 512), run_rows(b, 512));
    EXPECT_EQ(pool->stats().allocations, 1);
}

TEST(SessionMemory, CompilingResetsThePool) {
    const auto pool = std::make_shared<BufferPool>();
    Session a(compile(chain(512), {.buffers = pool}));
    run_rows(a, 512);
    EXPECT_GT(pool->stats().idle_bytes, 0u);
    compile(chain(8), {.buffers = pool});
    EXPECT_EQ(pool->stats().idle_bytes, 0u);
}

TEST(SessionMemory, SmallActivationsStayWithTheSession) {
    const Executable executable = compile(chain(2));
    Session session(executable);
    for (int i = 0; i < 10; ++i) run_rows(session, 2);
    EXPECT_EQ(executable.buffers().stats().requests, 1);
}

TEST(SessionMemory, ConcurrentSessionsNeverShareAnArena) {
    const Executable executable = compile(chain(512));
    Session first(executable);
    const auto expected = run_rows(first, 512);
    std::vector<std::thread> threads;
    std::atomic<int> wrong = 0;
    for (int t = 0; t < 3; ++t)
        threads.emplace_back([&] {
            Session session(executable);
            for (int i = 0; i < 10; ++i) wrong += run_rows(session, 512) != expected;
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
}

TEST(SessionMemory, ShapesThatFollowOneAnotherTakeTheMemoryOfOne) {
    const Executable executable = compile(chain(Dim::symbolic("rows", 1, 1000)));
    Session session(executable);
    for (std::int64_t rows = 1; rows <= 60; ++rows) run_rows(session, rows);
    EXPECT_EQ(executable.stats().plans, 60);
    EXPECT_EQ(executable.stats().cached_plans, 1);
}

/// Extents of 1 leave a transpose nothing to move: such shapes are lowered to other tensors than their
/// neighbours.
TEST(SessionMemory, ShapesThatAreLoweredInAnotherWayTakeTheMemoryOfOne) {
    TestGraph g;
    const ValueId x = g.input("x", {Dim::symbolic("a", 1, 1000), Dim::symbolic("b", 1, 1000), 32});
    const ValueId turned = g.op("transpose", {x}, {{"permutation", std::vector<std::int64_t>{1, 0, 2}}});
    g.output("y", g.op("softmax", {g.op("tanh", {turned})}, {{"axis", std::int64_t{2}}}));
    const Executable executable = compile(g.finish());
    Session session(executable);
    const auto run = [](Session& in, std::int64_t a, std::int64_t b) {
        const auto values = random_floats(static_cast<std::size_t>(a * b) * 32, 7);
        std::vector<float> y(values.size());
        const std::vector<std::int64_t> shape{a, b, 32};
        in.run({{{DType::f32, shape, values.data()}}}, {{{y.data(), y.size() * 4}}});
        return y;
    };
    for (std::int64_t b = 2; b < 40; ++b) {
        const std::int64_t a = b % 2 ? 1 : 3;
        Session fresh(compile(executable.graph()));
        EXPECT_EQ(run(session, a, b), run(fresh, a, b)) << a << ", " << b;
    }
    EXPECT_EQ(executable.stats().plans, 38);
    EXPECT_EQ(executable.stats().cached_plans, 1);
}

TEST(SessionMemory, PlansThatExceedTheCacheGoTheLeastRecentlyUsedFirst) {
    const Executable executable = compile(chain(Dim::symbolic("rows", 1, 1000)), {.cache_bytes = 20000});
    Session session(executable);
    std::vector<std::vector<float>> expected;
    for (std::int64_t rows = 1; rows <= 30; ++rows) expected.push_back(run_rows(session, rows));
    EXPECT_EQ(executable.stats().plans, 30);
    EXPECT_LT(executable.stats().cached_plans, 30);
    run_rows(session, 30);
    EXPECT_EQ(executable.stats().plans, 30);
    EXPECT_EQ(run_rows(session, 1), expected[0]);
    EXPECT_EQ(executable.stats().plans, 31);
}

}  // namespace
}  // namespace headrace
