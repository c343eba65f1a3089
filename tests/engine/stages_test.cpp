#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test_graph.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct StageOutput {
    std::vector<std::int64_t> shape;
    std::vector<std::byte> bytes;

    template <class T>
    std::vector<T> as() const {
        std::vector<T> values(bytes.size() / sizeof(T));
        std::memcpy(values.data(), bytes.data(), bytes.size());
        return values;
    }
};

/// Runs on float inputs of one dimension each; memory is made when the shapes are known.
std::vector<StageOutput> run_stages(Session& session, const Executable& executable,
                                    const std::vector<std::vector<float>>& inputs) {
    std::vector<std::vector<std::int64_t>> shapes;
    for (const auto& values : inputs) shapes.push_back({static_cast<std::int64_t>(values.size())});
    std::vector<InputView> in;
    for (std::size_t i = 0; i < inputs.size(); ++i) in.push_back({DType::f32, shapes[i], inputs[i].data()});
    std::vector<StageOutput> outputs;
    session.run(in, [&](const std::vector<std::vector<std::int64_t>>& made) {
        std::vector<OutputView> views;
        for (std::size_t i = 0; i < made.size(); ++i) {
            std::int64_t count = 1;
            for (std::int64_t d : made[i]) count *= d;
            outputs.push_back(
                {made[i], std::vector<std::byte>(bytes_of(executable.outputs()[i].dtype, count))});
        }
        for (StageOutput& o : outputs) views.push_back({o.bytes.data(), o.bytes.size()});
        return views;
    });
    return outputs;
}

NamedAttrs counts(const std::string& symbol) { return {{"counts", Shape{Dim::symbolic(symbol, 0)}}}; }

/// The positive elements of x, doubled: relu, positions, gather.
Graph positive_elements() {
    TestGraph g;
    const ValueId x = g.input("x", {Dim::symbolic("n")});
    const ValueId positive = g.op("relu", {x});
    const ValueId at = g.op("reshape", {g.op("non_zero", {positive}, counts("k"))},
                            {{"new_shape", Shape{Dim::symbolic("k", 0)}}});
    const ValueId found = g.op("gather", {positive, at}, {{"axis", std::int64_t{0}}});
    g.output("y", g.op("add", {found, found}));
    g.output("at", at);
    g.output("relu", positive);
    return g.finish();
}

TEST(Stages, AnExtentMayBeCountedDuringTheRun) {
    const Executable executable = compile(positive_elements());
    Session session(executable);
    const auto first = run_stages(session, executable, {{1, -2, 3, 0, 5}});
    EXPECT_THAT(first[0].shape, ElementsAre(3));
    EXPECT_THAT(first[0].as<float>(), ElementsAre(2, 6, 10));
    EXPECT_THAT(first[1].as<std::int64_t>(), ElementsAre(0, 2, 4));
    EXPECT_THAT(first[2].as<float>(), ElementsAre(1, 0, 3, 0, 5));
    const auto second = run_stages(session, executable, {{-1, 4}});
    EXPECT_THAT(second[0].as<float>(), ElementsAre(8));
    EXPECT_THAT(second[1].as<std::int64_t>(), ElementsAre(1));
}

TEST(Stages, NothingCountedIsAnEmptyOutput) {
    const Executable executable = compile(positive_elements());
    Session session(executable);
    const auto none = run_stages(session, executable, {{-1, -2}});
    EXPECT_THAT(none[0].shape, ElementsAre(0));
    EXPECT_THAT(none[2].as<float>(), ElementsAre(0, 0));
}

TEST(Stages, PlansAreKeptByTheShapesThatStagesMeet) {
    const Executable executable = compile(positive_elements());
    Session session(executable);
    run_stages(session, executable, {{1, -2, 3}});
    const auto plans = executable.stats().plans;
    EXPECT_EQ(plans, 2) << "one of each stage";
    run_stages(session, executable, {{-4, 5, 6}});
    EXPECT_EQ(executable.stats().plans, plans) << "two of three again";
    run_stages(session, executable, {{4, 5, 6}});
    EXPECT_EQ(executable.stats().plans, plans + 1) << "three of three: the second stage";
}

TEST(Stages, AreCutAgainWhereCountsDependOnCounts) {
    TestGraph g;
    const ValueId x = g.input("x", {Dim::symbolic("n")});
    const Shape k{Dim::symbolic("k", 0)}, m{Dim::symbolic("m", 0)};
    const ValueId at = g.op("reshape", {g.op("non_zero", {x}, counts("k"))}, {{"new_shape", k}});
    const ValueId found = g.op("gather", {x, at}, {{"axis", std::int64_t{0}}});
    const ValueId positive = g.op("relu", {found});
    const ValueId again = g.op("reshape", {g.op("non_zero", {positive}, counts("m"))}, {{"new_shape", m}});
    g.output("y", g.op("gather", {found, again}, {{"axis", std::int64_t{0}}}));
    const Executable executable = compile(g.finish());
    Session session(executable);
    EXPECT_THAT(run_stages(session, executable, {{0, 3, -1, 0, 7}})[0].as<float>(), ElementsAre(3, 7));
    EXPECT_EQ(executable.stats().plans, 2) << "what counts inputs is counted before the first stage";
}

TEST(Stages, ACountIsKnownWhereOnlyItIsUsed) {
    TestGraph g;
    const ValueId x = g.input("x", {Dim::symbolic("n")});
    g.op("non_zero", {x}, counts("k"));
    const ValueId one = g.constant<float>({1}, {1});
    g.output("y", g.op("expand", {one}, {{"new_shape", Shape{Dim::symbolic("k", 0)}}}));
    const Executable executable = compile(g.finish());
    Session session(executable);
    EXPECT_THAT(run_stages(session, executable, {{0, 3, 0, 1}})[0].as<float>(), ElementsAre(1, 1));
}

TEST(Stages, ConditionsOnCountsAreCheckedWhenTheyAreKnown) {
    TestGraph g;
    const ValueId x = g.input("x", {Dim::symbolic("n")}), y = g.input("y", {Dim::symbolic("m", 2)});
    const ValueId at =
        g.op("reshape", {g.op("non_zero", {x}, counts("k"))}, {{"new_shape", Shape{Dim::symbolic("k", 0)}}});
    g.output("z", g.op("add", {g.op("gather", {x, at}, {{"axis", std::int64_t{0}}}), y}));
    const Executable executable = compile(g.finish());
    Session session(executable);
    EXPECT_THAT(run_stages(session, executable, {{0, 3, 4}, {1, 2}})[0].as<float>(), ElementsAre(4, 6));
    EXPECT_THAT(message_of(
                    [&] {
                        run_stages(session, executable, {{2, 3, 4}, {1, 2}});
                    },
                    Code::invalid_argument),
                HasSubstr("add: the extents k = 3 and m = 2 must be equal, or one of them 1"));
}

TEST(Stages, StatesLiveThroughAllOfThem) {
    TestGraph g;
    const ValueId x = g.input("x", {Dim::symbolic("n")}), total = g.state("total", {1});
    const ValueId positive = g.op("relu", {x});
    const ValueId at = g.op("reshape", {g.op("non_zero", {positive}, counts("k"))},
                            {{"new_shape", Shape{Dim::symbolic("k", 0)}}});
    const ValueId sum = g.op("reduce_sum", {g.op("gather", {x, at}, {{"axis", std::int64_t{0}}})},
                             {{"axes", std::vector<std::int64_t>{0}}, {"keep_dimensions", true}});
    g.output("y", g.op("accumulate", {total, sum}));
    const Executable executable = compile(g.finish());
    Session session(executable);
    EXPECT_THAT(run_stages(session, executable, {{1, -5, 2}})[0].as<float>(), ElementsAre(3));
    EXPECT_THAT(run_stages(session, executable, {{4}})[0].as<float>(), ElementsAre(7));
    session.reset_states();
    EXPECT_THAT(run_stages(session, executable, {{4}})[0].as<float>(), ElementsAre(4));
}

TEST(Stages, ShapesThatARunCountsAreNotKnownBefore) {
    const Executable executable = compile(positive_elements());
    Session session(executable);
    const std::vector<std::vector<std::int64_t>> shapes{{4}};
    EXPECT_THAT(message_of([&] { session.output_shapes(shapes); }, Code::invalid_argument),
                HasSubstr("give run() a function"));
}

TEST(Stages, OneSymbolIsCountedOnce) {
    TestGraph g;
    const ValueId x = g.input("x", {Dim::symbolic("n")}), y = g.input("y", {Dim::symbolic("m")});
    g.output("a", g.op("non_zero", {x}, counts("k")));
    g.output("b", g.op("non_zero", {y}, counts("k")));
    const Graph graph = g.finish();
    EXPECT_THAT(message_of([&] { compile(graph); }, Code::invalid_argument),
                HasSubstr("the extent k is counted by another node, too"));
}

}  // namespace
}  // namespace headrace::testing
