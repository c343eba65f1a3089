/// Sessions whose shapes change from run to run, as a cache's do: each run gives what a session gives that
/// sees nothing else.
#include <numeric>

#include "test_graph.h"

namespace headrace {
namespace {

using namespace testing;

constexpr std::int64_t kWidth = 8, kLongest = 96;

/// One step of a decoder: keys join a cache, which is read through views, transpositions and rows of a table,
/// by kernels of ours and ggml's.
Graph decoder() {
    TestGraph g;
    const Dim past = Dim::symbolic("past", 0, kLongest);
    const Dim length = Dim::of(Expression(past) + Expression(2));
    const ValueId x = g.input("x", {2, kWidth}), cache = g.input("cache", {past, kWidth});
    const ValueId keys = g.op("concat", {cache, x}, {{"axis", std::int64_t{0}}});
    const ValueId table =
        g.constant<float>({kLongest + 2, kWidth}, random_floats((kLongest + 2) * kWidth, 5));
    const ValueId rows = g.op("slice", {table}, {{"starts", Shape{past, 0}}, {"sizes", Shape{2, kWidth}}});
    const ValueId query = g.op("add", {g.op("mul", {x, rows}), x});
    const ValueId turned = g.op("transpose", {keys}, {{"permutation", std::vector<std::int64_t>{1, 0}}});
    const ValueId scores = g.op("matmul", {query, turned});
    const ValueId bias = g.op("reduce_sum", {keys}, {{"axes", std::vector<std::int64_t>{1}}});
    const ValueId shifted = g.op("tanh", {g.op("add", {g.op("add", {scores, bias}), bias})});
    const ValueId weights = g.op("softmax", {shifted}, {{"axis", std::int64_t{1}}});
    const ValueId w = g.constant<float>({kWidth, 24}, random_floats(kWidth * 24, 6));
    g.output("y", g.op("gelu", {g.op("matmul", {g.op("matmul", {weights, keys}), w})}));
    g.output("keys", keys);
    g.output("flat", g.op("reshape", {g.op("abs", {keys})},
                          {{"new_shape", Shape{Dim::of(Expression(length) * Expression(kWidth))}}}));
    return g.finish();
}

std::vector<std::vector<float>> outputs_of(Session& session, std::int64_t past) {
    return run(session, {{2, kWidth}, {past, kWidth}},
               {random_floats(2 * kWidth, static_cast<unsigned>(past)),
                random_floats(static_cast<std::size_t>(past * kWidth), static_cast<unsigned>(past) + 1000)});
}

void expect_as_alone(Session& session, const Executable& executable, std::int64_t past) {
    SCOPED_TRACE(past);
    Session alone(executable);
    const auto expected = outputs_of(alone, past), actual = outputs_of(session, past);
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(actual[i], expected[i]);
}

class GrowingShapes : public ::testing::TestWithParam<CompileOptions> {};

TEST_P(GrowingShapes, GiveWhatEachGivesAlone) {
    const Executable executable = compile(decoder(), GetParam());
    Session session(executable);
    std::vector<std::int64_t> lengths(kLongest);
    std::iota(lengths.begin(), lengths.end(), 0);
    for (const std::int64_t past : lengths) expect_as_alone(session, executable, past);
    for (const std::int64_t past : {90, 3, 41, 0, 1, 96, 2, 2, 41, 40})
        expect_as_alone(session, executable, past);
}

INSTANTIATE_TEST_SUITE_P(Implementations, GrowingShapes,
                         ::testing::Values(CompileOptions{}, CompileOptions{.threads = 2},
                                           CompileOptions{.packed_kernels = false},
                                           CompileOptions{.packed_kernels = false, .native_ops = false}));

TEST(ShapesThatComeBack, ArePlannedOnce) {
    const Executable executable = compile(decoder());
    Session session(executable);
    for (int round = 0; round < 5; ++round)
        for (const std::int64_t past : {4, 9, 30}) expect_as_alone(session, executable, past);
    const std::int64_t plans = executable.stats().plans;
    for (int round = 0; round < 5; ++round)
        for (const std::int64_t past : {4, 9, 30}) outputs_of(session, past);
    EXPECT_EQ(executable.stats().plans, plans);
}

TEST(ShapesThatDoNotFit, LeaveASessionThatRunsOthers) {
    const Executable executable = compile(decoder());
    Session session(executable);
    outputs_of(session, 5);
    const std::string message =
        message_of([&] { outputs_of(session, kLongest + 1); }, Code::invalid_argument);
    EXPECT_NE(message.find("past"), std::string::npos) << message;
    expect_as_alone(session, executable, 6);
    expect_as_alone(session, executable, 5);
}

}  // namespace
}  // namespace headrace
