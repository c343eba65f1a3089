#include "passes/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/interpret.h"
#include "passes/tiny_graph.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Something for every pass to do.
Graph untidy_graph() {
    TinyGraph t;
    const ValueId x = t.op("identity", {t.input("x", {2, 3})});
    const ValueId w = t.op("transpose", {t.constant("w", {5, 3})});
    const ValueId b = t.op("neg", {t.constant("b", {5})});
    const ValueId layer = t.op("relu", {t.op("add", {t.op("matmul", {x, w}), b})});
    const ValueId twin = t.op("relu", {t.op("add", {t.op("matmul", {x, w}), b})});
    t.op("exp", {layer});
    t.output("y", layer);
    t.output("z", twin);
    // Weights that blocks say exactly: as integers with a scale, and as floats.
    const ValueId q = t.constant("q", DType::i8, {64, 64}, std::vector<std::int8_t>(64 * 64, 3));
    const ValueId s = t.constant("s", DType::f32, {1, 1}, std::vector<float>{0.25f});
    const ValueId wide = t.op("matmul", {t.input("u", {2, 64}), t.op("dequantize_linear", {q, s})});
    const ValueId v = t.constant("v", DType::f32, {128, 256}, std::vector<float>(128 * 256, 127.0f / 128));
    t.output("wide", wide);
    const ValueId image = t.input("image", {1, 4, 4, 3}), ones = t.constant("ones", {2});
    const Shape margin{0, 1, 1, 0};
    const ValueId padded = t.op("pad", {image}, {{"beginning_padding", margin}, {"ending_padding", margin}});
    const ValueId conv =
        t.op("conv2d", {padded, t.constant("filter", {2, 3, 3, 3})}, {{"input_layout", std::string("nhwc")}});
    const ValueId normal = t.op("batch_normalization",
                                {conv, ones, t.constant("var", DType::f32, {2}, std::vector<float>{1, 2})},
                                {{"axis", std::int64_t{3}}});
    using Extents = std::vector<std::int64_t>;
    const ValueId pixels = t.op("reshape", {normal}, {{"new_shape", Extents{1, 16, 2}}});
    t.output("limited", t.op("relu", {pixels}));
    const ValueId gate = t.input("gate", {2, 3});
    t.output("gated", t.op("mul", {t.op("mul", {gate, t.op("sigmoid", {gate})}), x}));
    const ValueId cache = t.state("cache", {4, 2});
    const ValueId at = t.op("reshape", {t.input("at", {1}, DType::i32)}, {{"new_shape", Extents{1, 1}}});
    const ValueId at_each = t.op("expand", {at}, {{"new_shape", Extents{1, 2}}});
    t.op("assign", {cache, t.op("scatter_elements", {cache, at_each, t.input("new", {1, 2})})});
    t.output("large", t.op("matmul", {t.input("r", {2, 128}), v}));
    t.output("last", t.op("lstm",
                          {t.input("sequence", {3, 1, 2}), t.constant("gates", {1, 64, 2}),
                           t.constant("recurrent", {1, 64, 16})},
                          {{"hidden_size", std::int64_t{16}}}));
    t.output("half", t.op("abs", {t.input("h", {2}, DType::f16)}));
    // Bytes that become real numbers and the same bytes.
    const ValueId step = t.constant("step", DType::f32, {}, std::vector<float>{0.5f});
    const ValueId zero = t.constant("zero", DType::i8, {}, std::vector<std::int8_t>{3});
    const ValueId real = t.op("dequantize_linear", {t.input("bytes", {2}, DType::i8), step, zero});
    t.output("same",
             t.op("quantize_linear", {t.op("reshape", {real}, {{"new_shape", Extents{2, 1}}}), step, zero}));
    // A function of one byte.
    const ValueId level = t.op("dequantize_linear", {t.input("level", {2}, DType::i8), step, zero});
    t.output("looked_up", t.op("quantize_linear", {t.op("tanh", {level}), step, zero}));
    // A product of bytes that nothing quantizes.
    const ValueId rows = t.op("dequantize_linear", {t.input("rows", {2, 3}, DType::i8), step, zero});
    const ValueId few = t.constant("few", DType::i8, {3, 2}, std::vector<std::int8_t>{1, -2, 3, 4, 5, -6});
    t.output("product", t.op("matmul", {rows, t.op("dequantize_linear", {few, step})}));
    return t.finish();
}

std::vector<std::string> names_of_ran(const std::vector<PassReport>& reports) {
    std::vector<std::string> names;
    for (const PassReport& report : reports)
        if (report.ran) names.push_back(report.name);
    return names;
}

TEST(Pipeline, RunsEveryPassAndReportsWhatItDid) {
    Graph graph = untidy_graph();
    const Graph before = graph;
    const auto reports =
        run_passes(graph, {.verify = true, .context = {.weights = BlockFormat::q8_0, .round_to_bf16 = true}});
    ASSERT_TRUE(reports.ok()) << reports.error().message;
    EXPECT_EQ(formula(graph, "wide"), "fused_matmul(u, q) {transpose_b=true}");
    EXPECT_EQ(formula(graph, "large"), "fused_matmul(r, v) {transpose_b=true}");
    EXPECT_EQ(formula(graph, "y"), "fused_matmul(x, w, constant) {transpose_b=true, activation=\"relu\"}");
    EXPECT_EQ(formula(graph, "gated"), "glu(gate, x)");
    EXPECT_EQ(formula(graph, "looked_up"), "byte_table(level, constant)");
    EXPECT_EQ(graph.nodes.size(), 17U);
    ASSERT_EQ(reports.value().size(), all_passes().size());
    for (const PassReport& report : reports.value()) {
        EXPECT_TRUE(report.ran) << report.name;
        EXPECT_GE(report.ms, 0);
        std::int64_t total = 0;
        for (const auto& [what, count] : report.counts) total += count;
        EXPECT_GT(total, 0) << report.name;
    }
    expect_same_results(before, graph, 1e-5);
}

TEST(Pipeline, EveryPassHasANameOfItsOwnAndASummary) {
    std::set<std::string_view> names;
    for (const Pass& pass : all_passes()) {
        EXPECT_TRUE(names.insert(pass.name).second) << pass.name;
        EXPECT_FALSE(pass.summary.empty()) << pass.name;
    }
}

TEST(Pipeline, RunsEachPassAfterThoseThatItFollows) {
    std::set<std::string_view> before;
    for (const Pass& pass : all_passes()) {
        for (const std::string_view name : pass.after) EXPECT_TRUE(before.contains(name)) << pass.name;
        before.insert(pass.name);
    }
    EXPECT_EQ(find_pass("sink_reshapes")->name, "sink_reshapes");
    EXPECT_EQ(find_pass("sink"), nullptr);
}

std::vector<std::string_view> names_in_order(const std::vector<Pass>& passes) {
    std::vector<std::string_view> names;
    const std::vector<Pass> ordered = in_order(passes).value();
    for (const Pass& pass : ordered) names.push_back(pass.name);
    return names;
}

TEST(Pipeline, OrdersPassesByWhatTheyFollowAndThenByName) {
    EXPECT_THAT(names_in_order({{.name = "c"}, {.name = "a", .after = {"c"}}, {.name = "b"}}),
                ElementsAre("b", "c", "a"));
    EXPECT_THAT(
        names_in_order({{.name = "a", .after = {"b", "c"}}, {.name = "c"}, {.name = "b", .after = {"c"}}}),
        ElementsAre("c", "b", "a"));
}

TEST(Pipeline, RefusesOrdersThatCannotBe) {
    EXPECT_EQ(in_order({{.name = "a", .after = {"b"}}}).error().message,
              "a follows the pass 'b', which there is not");
    EXPECT_EQ(in_order({{.name = "a", .after = {"b"}}, {.name = "b", .after = {"a"}}, {.name = "c"}})
                  .error()
                  .message,
              "the pass a follows itself, by way of others");
}

TEST(Pipeline, LeavesOutWhatIsSwitchedOff) {
    for (const Pass& pass : all_passes()) {
        Graph graph = untidy_graph();
        const Graph before = graph;
        const auto reports = run_passes(graph, {.disabled = {std::string(pass.name)}, .verify = true});
        ASSERT_TRUE(reports.ok()) << reports.error().message;
        for (const PassReport& report : reports.value()) {
            EXPECT_EQ(report.ran, report.name != pass.name);
            EXPECT_TRUE(report.ran || report.counts.empty());
        }
        expect_same_results(before, graph, 1e-5);
    }
}

TEST(Pipeline, NamesThePassesWhenOneIsUnknown) {
    Graph graph = untidy_graph();
    const auto reports = run_passes(graph, {.disabled = {"fuse_all"}});
    EXPECT_THAT(reports.error().message,
                HasSubstr("no pass is called 'fuse_all'; the passes are eliminate_dead_code, "));
    EXPECT_EQ(run_passes(graph, {.stop_after = "x"}).error().code, Code::invalid_argument);
}

TEST(Pipeline, StopsAfterAPassAndShowsTheGraphAfterEach) {
    Graph graph = untidy_graph();
    std::vector<std::string> seen;
    PassOptions options{.stop_after = "eliminate_no_ops"};
    options.observe = [&](std::string_view pass, const Graph& g) {
        seen.push_back(fmt::format("{}: {}", pass, g.nodes.size()));
    };
    const auto reports = run_passes(graph, options).value();
    EXPECT_THAT(seen, ElementsAre("eliminate_dead_code: 35", "eliminate_no_ops: 34"));
    EXPECT_THAT(names_of_ran(reports), ElementsAre("eliminate_dead_code", "eliminate_no_ops"));
    EXPECT_EQ(reports.size(), all_passes().size());
}

TEST(Pipeline, HasNothingToDoTheSecondTime) {
    Graph graph = untidy_graph();
    ASSERT_TRUE(run_passes(graph).ok());
    const std::string once = print(graph);
    ASSERT_TRUE(run_passes(graph).ok());
    EXPECT_EQ(print(graph), once);
}

/// A graph of random nodes over [4, 4] matrices: all passes find something, states are read and written.
Graph random_graph(unsigned seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::size_t n) {
        return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
    };
    TinyGraph t;
    const Shape shape{4, 4};
    std::vector<ValueId> pool{t.input("x", shape), t.input("y", shape), t.constant("a", shape, 1),
                              t.constant("b", shape, 2), t.constant("a again", shape, 1)};
    std::vector<ValueId> states{t.state("s", shape), t.state("t", shape)};
    const ValueId row = t.constant("row", {4}, 5), wide_row = t.constant("wide row", {1, 4}, 6);
    pool.insert(pool.end(), states.begin(), states.end());
    const auto any = [&] { return pool[below(pool.size())]; };
    const std::size_t count = 4 + below(40);
    for (std::size_t i = 0; i < count; ++i) {
        // Mostly the latest value, so that chains arise.
        const ValueId x = below(3) > 0 ? pool.back() : any();
        switch (below(10)) {
            case 0: pool.push_back(t.op("add", {x, any()})); break;
            case 1: pool.push_back(t.op("add", {below(2) ? row : wide_row, x})); break;
            case 2: pool.push_back(t.op(below(2) ? "relu" : "tanh", {x})); break;
            case 3: pool.push_back(t.op("transpose", {any()})); break;
            case 4: pool.push_back(t.op("identity", {x})); break;
            case 5: pool.push_back(t.op("reshape", {x}, {{"new_shape", shape}})); break;
            case 6: pool.push_back(t.op("gemm", {x, any(), row}, {{"b_transpose", below(2) == 1}})); break;
            case 7:
                if (!states.empty() && below(3) == 0) {  // the old version must not be read from now on
                    const ValueId state = states.back();
                    std::erase(pool, state);
                    states.pop_back();
                    const ValueId value = any();
                    pool.push_back(t.op("assign", {state, value}));
                }
                break;
            default: pool.push_back(t.op("tanh", {t.op("matmul", {x, any()})})); break;
        }
    }
    t.output("last", pool.back());
    t.output("any", any());
    t.output("another", any());
    return t.finish();
}

TEST(Pipeline, PreservesTheResultsOfRandomGraphs) {
    for (unsigned seed = 0; seed < 500; ++seed) {
        SCOPED_TRACE(seed);
        Graph graph = random_graph(seed);
        const Graph before = graph;
        ASSERT_TRUE(verify(before).ok()) << verify(before).error().message;
        const auto reports = run_passes(graph, {.verify = true});
        ASSERT_TRUE(reports.ok()) << reports.error().message;
        expect_same_results(before, graph, 1e-4);
        if (HasFatalFailure()) FAIL() << print(before) << "\n" << print(graph);
    }
}

TEST(Pipeline, TakesLinearTime) {
    TinyGraph t;
    ValueId x = t.input("x", {2, 4});
    const ValueId w = t.op("transpose", {t.constant("w", {4, 4})});
    for (int i = 0; i < 20'000; ++i) {
        const ValueId b = t.op("neg", {t.constant("b", {4}, static_cast<unsigned>(i))});
        x = t.op("identity", {t.op("relu", {t.op("add", {t.op("matmul", {x, w}), b})})});
    }
    t.output("y", x);
    Graph graph = t.finish();
    const auto reports = run_passes(graph, {.verify = true});
    ASSERT_TRUE(reports.ok()) << reports.error().message;
    EXPECT_EQ(graph.nodes.size(), 20'000U);
    double ms = 0;
    for (const PassReport& report : reports.value()) ms += report.ms;
    EXPECT_LT(ms, 10'000) << "100,000 nodes take about 0.4 s";
}

}  // namespace
}  // namespace headrace::testing
