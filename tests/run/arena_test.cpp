/// Graphs in which many values are alive at once, and not all are given back together.
#include "run/arena.h"

#include "engine/test_graph.h"

namespace headrace {
namespace {

using namespace testing;

/// Two values of each of `pairs` constants; every other one is used up before the rest is.
Graph alternating(int pairs, std::int64_t width = 8) {
    TestGraph g;
    const ValueId x = g.input("x", {width});
    std::vector<ValueId> first, second;
    for (int i = 0; i < pairs; ++i) {
        const ValueId c = g.constant<float>(
            {width}, random_floats(static_cast<std::size_t>(width), static_cast<unsigned>(i)));
        first.push_back(g.op("mul", {x, c}));
        second.push_back(g.op("add", {x, c}));
    }
    for (const auto& [name, values] : {std::pair("products", first), std::pair("sums", second)}) {
        ValueId total = values[0];
        for (std::size_t i = 1; i < values.size(); ++i) total = g.op("add", {total, values[i]});
        g.output(name, total);
    }
    return g.finish();
}

std::vector<std::vector<float>> expected(const std::vector<float>& x, int pairs) {
    std::vector<std::vector<float>> out(2, std::vector<float>(x.size()));
    for (int i = 0; i < pairs; ++i) {
        const auto c = random_floats(x.size(), static_cast<unsigned>(i));
        for (std::size_t k = 0; k < x.size(); ++k) {
            out[0][k] += x[k] * c[k];
            out[1][k] += x[k] + c[k];
        }
    }
    return out;
}

TEST(Arena, AnyNumberOfValuesMayBeAliveAtOnce) {
    const auto x = random_floats(8, 77);
    for (const int pairs : {100, 260, 600}) {
        SCOPED_TRACE(pairs);
        Session session(
            compile(alternating(pairs), {.disabled_passes = {"eliminate_common_subexpressions"}}));
        for (int i = 0; i < 2; ++i) {
            const auto out = run(session, {{8}}, {x});
            for (std::size_t o = 0; o < 2; ++o) expect_close(out[o], expected(x, pairs)[o], 1e-4f);
        }
    }
}

TEST(Arena, MemoryIsUsedAgainWhereFewAreAliveAtOnce) {
    TestGraph g;
    ValueId v = g.input("x", {64});
    for (int i = 0; i < 1000; ++i) v = g.op("add", {g.op("tanh", {v}), v});
    g.output("y", v);
    Session session(compile(g.finish()));
    run(session, {{64}}, {random_floats(64, 3)});
    EXPECT_LE(session.stats().arena_bytes, 8 * 64 * sizeof(float));
}

TEST(Arena, ManyLiveValuesShareTheMemoryOfThoseThatAreDone) {
    constexpr int kPairs = 300, kWidth = 64;
    Session session(
        compile(alternating(kPairs, kWidth), {.disabled_passes = {"eliminate_common_subexpressions"}}));
    run(session, {{kWidth}}, {random_floats(kWidth, 3)});
    const std::size_t alive = 2 * kPairs * kWidth * sizeof(float);  // before the first of them is added
    EXPECT_GE(session.stats().arena_bytes, alive - 2 * kWidth * sizeof(float));
    EXPECT_LE(session.stats().arena_bytes, alive + 4 * kWidth * sizeof(float));
}

TEST(FreeList, TakesTheSmallestPieceThatSufficesAndJoinsNeighbors) {
    FreeList list;
    for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(list.take(10), 10 * i);
    list.give_back(10, 10);
    list.give_back(30, 10);
    list.give_back(40, 10);
    EXPECT_EQ(list.take(8), 10u);
    EXPECT_EQ(list.take(20), 30u);
    EXPECT_EQ(list.take(2), 18u);
    list.give_back(0, 10);
    list.give_back(18, 2);
    list.give_back(10, 8);
    EXPECT_EQ(list.take(20), 0u);
    EXPECT_EQ(list.end(), 60u);
}

TEST(FreeList, SumsDoNotWrapAroundWhereAddressesHave32Bits) {
    FreeList list;
    constexpr std::uint64_t kLarge = 3ull << 30;
    EXPECT_EQ(list.take(kLarge), 0u);
    EXPECT_EQ(list.take(kLarge), kLarge);
    EXPECT_EQ(list.end(), 2 * kLarge);
}

TEST(FreeList, NothingCrossesTheBorderOfAChunk) {
    FreeList list(100);
    EXPECT_EQ(list.take(70), 0u);
    EXPECT_EQ(list.take(60), 100u);
    EXPECT_EQ(list.take(30), 70u);
    EXPECT_EQ(list.take(40), 160u);
    list.give_back(70, 30);
    list.give_back(100, 60);
    EXPECT_EQ(list.take(80), 200u);
    EXPECT_EQ(list.take(60), 100u);
    EXPECT_EQ(list.end(), 280u);
}

}  // namespace
}  // namespace headrace
