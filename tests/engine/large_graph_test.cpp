/// Graphs of a million nodes: everything between builder and result takes linear time.
#include "ir/graph_file.h"
#include "test_graph.h"

namespace headrace {
namespace {

using namespace testing;

/// x + 1 - 1 + 1 ... through `nodes` nodes that neither folding nor sharing can remove.
Graph long_chain(int nodes) {
    TestGraph g;
    ValueId x = g.input("x", {2});
    const ValueId one = g.constant<float>({2}, {1, 1});
    for (int i = 0; i < nodes; ++i) x = g.op(i % 2 ? "sub" : "add", {x, one});
    g.output("y", x);
    return g.finish();
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kMany = 100'000;  // the sanitizers' memory would not fit
#else
constexpr int kMany = 1'000'000;
#endif

/// Anything quadratic would exceed the test's time limit by far.
TEST(LargeGraph, AMillionNodesRun) {
    Session session(compile(long_chain(kMany), {.threads = 1}));
    EXPECT_EQ(run(session, {{2}}, {{3, 4}})[0], (std::vector<float>{3, 4}));
    EXPECT_EQ(session.stats().nodes.size(), static_cast<std::size_t>(kMany));
}

TEST(LargeGraph, AHundredThousandNodesSurviveAFile) {
    const Graph graph = long_chain(100'000);
    const auto bytes = std::make_shared<std::vector<std::byte>>(must(graph_bytes(graph)));
    const Graph again = must(graph_from_bytes(bytes, *bytes, find_op));
    EXPECT_EQ(again.nodes.size(), graph.nodes.size());
    EXPECT_EQ(print_graph(again), print_graph(graph));
}

}  // namespace
}  // namespace headrace
