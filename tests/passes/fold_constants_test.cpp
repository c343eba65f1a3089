#include <gtest/gtest.h>

#include <cstring>

#include "passes/interpret.h"
#include "passes/tiny_graph.h"

namespace headrace::testing {
namespace {

TEST(FoldConstants, ComputesChainsOfConstantNodes) {
    TinyGraph t;
    const ValueId x = t.input("x", {2, 3});
    const ValueId w = t.op("transpose", {t.constant("w", {3, 2})});
    const ValueId scaled = t.op("mul", {w, t.constant("scale", {})});
    t.output("y", t.op("add", {x, scaled}));
    Graph graph = t.finish();
    const Graph before = graph;
    const Counts counts = run_pass("fold_constants", graph);
    EXPECT_EQ(counts.at("nodes_folded"), 2);
    EXPECT_EQ(counts.at("bytes_made"), 48);
    EXPECT_EQ(formula(graph, "y"), "add(x, constant)");
    EXPECT_EQ(graph.values.size(), 3U) << "the constants that it replaced must go";
    expect_same_results(before, graph);
}

TEST(FoldConstants, MayLeaveAConstantAsAnOutput) {
    TinyGraph t;
    t.input("x", {1});
    t.output("y", t.op("exp", {t.constant("w", {3})}));
    Graph graph = t.finish();
    const Graph before = graph;
    EXPECT_EQ(run_pass("fold_constants", graph).at("nodes_folded"), 1);
    EXPECT_TRUE(graph.nodes.empty());
    expect_same_results(before, graph);
}

TEST(FoldConstants, FoldsEveryOutputOfANode) {
    TinyGraph t;
    const auto parts =
        t.many("split", {t.constant("w", {4, 2})}, {{"splits", std::vector<std::int64_t>{1, 3}}});
    const ValueId x = t.input("x", {2});
    t.output("a", t.op("add", {x, parts[0]}));
    t.output("b", t.op("add", {x, parts[1]}));
    Graph graph = t.finish();
    const Graph before = graph;
    EXPECT_EQ(run_pass("fold_constants", graph).at("nodes_folded"), 1);
    expect_same_results(before, graph);
}

TEST(FoldConstants, MultipliesLargeMatricesByKernelsWhoseOperationsCountLess) {
    TinyGraph t;
    const ValueId product = t.op("matmul", {t.constant("a", {70, 300}), t.constant("b", {300, 400})});
    t.output("y", t.op("add", {t.input("x", {400}), product}));
    Graph graph = t.finish();
    const Graph before = graph;
    constexpr double kOperations = 2.0 * 70 * 300 * 400;
    const PassContext few{.fold = {.flops = kOperations / 100}}, enough{.fold = {.flops = kOperations / 10}};
    EXPECT_EQ(run_pass("fold_constants", graph, few).at("nodes_folded"), 0);
    EXPECT_EQ(run_pass("fold_constants", graph, enough).at("nodes_folded"), 1);
    EXPECT_EQ(formula(graph, "y"), "add(x, constant)");
    expect_same_results(before, graph, 1e-4);
}

TEST(FoldConstants, LeavesStateWritesAlone) {
    TinyGraph t;
    t.output("y", t.op("assign", {t.state("s", {3}), t.op("neg", {t.constant("w", {3})})}));
    Graph graph = t.finish();
    const Graph before = graph;
    EXPECT_EQ(run_pass("fold_constants", graph).at("nodes_folded"), 1);
    EXPECT_EQ(formula(graph, "y"), "assign(s, constant)");
    expect_same_results(before, graph);
}

/// y = x + expand(w[columns] to [rows, columns]).
Graph expansion(std::int64_t rows, std::int64_t columns) {
    TinyGraph t;
    const ValueId w = t.constant("w", {columns});
    const ValueId expanded = t.op("expand", {w}, {{"new_shape", Shape{rows, columns}}});
    t.output("y", t.op("add", {t.input("x", {rows, columns}), expanded}));
    return t.finish();
}

TEST(FoldConstants, LimitsGrowth) {
    const auto folded = [](std::int64_t rows, std::int64_t columns, PassContext context = {}) {
        Graph graph = expansion(rows, columns);
        const Counts counts = run_pass("fold_constants", graph, context);
        EXPECT_EQ(counts.at("nodes_folded") + counts.at("nodes_too_large"), 1);
        return counts.at("nodes_folded") == 1;
    };
    EXPECT_TRUE(folded(100, 10)) << "4000 bytes";
    EXPECT_FALSE(folded(100, 11)) << "4400 bytes from 44";
    EXPECT_TRUE(folded(2, 2000)) << "twice as large";
    EXPECT_FALSE(folded(3, 2000)) << "three times as large";
    EXPECT_TRUE(folded(3, 2000, {.fold = {.growth = 3}}));
    EXPECT_FALSE(folded(2, 2000, {.fold = {.grown_bytes = 15'999}}));
    EXPECT_FALSE(folded(1, 2000, {.fold = {.always_bytes = 0, .flops = -1}}));
}

/// w[1024] joined with itself `times` times, and one element of that.
Graph doubled(int times) {
    TinyGraph t;
    ValueId w = t.constant("w", {1024});
    for (int i = 0; i < times; ++i) w = t.op("concat", {w, w}, {{"axis", std::int64_t{0}}});
    const ValueId first = t.op("slice", {w}, {{"starts", std::vector<std::int64_t>{0}}, {"sizes", Shape{1}}});
    t.output("y", t.op("add", {t.input("x", {1}), first}));
    return t.finish();
}

TEST(FoldConstants, CountsAnOperandThatIsGivenTwiceOnce) {
    Graph graph = doubled(18);  // 1 GiB: what 32 bits address
    const Counts counts = run_pass("fold_constants", graph);
    EXPECT_EQ(counts.at("nodes_folded"), 14) << "up to 64 MiB";
    EXPECT_EQ(counts.at("bytes_made"), (std::int64_t{1} << 27) - 8192);
}

TEST(FoldConstants, LimitsAllNodesTogether) {
    const auto folded = [](PassContext context) {
        TinyGraph t;
        ValueId w = t.constant("w", {1000});
        for (int i = 0; i < 20; ++i) w = t.op("neg", {w});
        t.output("y", t.op("add", {t.input("x", {1000}), w}));
        Graph graph = t.finish();
        return run_pass("fold_constants", graph, context).at("nodes_folded");
    };
    EXPECT_EQ(folded({}), 20);
    EXPECT_EQ(folded({.fold = {.all_bytes = 24'000, .all_growth = 0}}), 6);
    EXPECT_EQ(folded({.fold = {.all_bytes = 0, .all_growth = 3}}), 3);
    EXPECT_EQ(folded({.fold = {.all_flops = 20'000}}), 5);
}

TEST(FoldConstants, DoesNotDequantizeWeights) {
    TinyGraph t;
    const ValueId w = t.constant("w", DType::i8, {8000}, std::vector<std::int8_t>(8000, 3));
    const ValueId wide = t.op("cast", {w}, {{"data_type", DType::f32}});
    t.output("y", t.op("add", {t.input("x", {8000}), wide}));
    Graph graph = t.finish();
    EXPECT_EQ(run_pass("fold_constants", graph).at("nodes_too_large"), 1);
}

TEST(FoldConstants, ReadsMisalignedAndEmptyConstants) {
    TinyGraph t;
    auto room = std::make_shared<std::vector<std::byte>>(32);
    const float values[] = {1, 2, 3};
    std::memcpy(room->data() + 1, values, sizeof(values));
    const auto odd = std::make_shared<Constant>(Constant{.bytes = {room->data() + 1, 12}, .owner = room});
    const ValueId a = must(t.builder.constant({DType::f32, {3}}, odd));
    const ValueId none = must(t.builder.constant({DType::f32, {0}}, std::make_shared<Constant>()));
    t.output("y", t.op("concat", {t.op("neg", {a}), t.op("neg", {none})}, {{"axis", std::int64_t{0}}}));
    Graph graph = t.finish();
    EXPECT_EQ(run_pass("fold_constants", graph).at("nodes_folded"), 3);
    const Value& y = graph.value(graph.outputs[0].second);
    ASSERT_EQ(y.kind, ValueKind::constant);
    const float expected[] = {-1, -2, -3};
    EXPECT_EQ(std::memcmp(y.constant->bytes.data(), expected, 12), 0);
}

}  // namespace
}  // namespace headrace::testing
