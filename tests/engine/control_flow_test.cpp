#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "ir/graph_file.h"
#include "ir/print.h"
#include "test_graph.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Integers = std::vector<std::int64_t>;

struct Output {
    std::vector<std::int64_t> shape;
    std::vector<std::byte> bytes;

    template <class T = float>
    std::vector<T> as() const {
        std::vector<T> values(bytes.size() / sizeof(T));
        if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
        return values;
    }
};

/// Runs; memory is made when the shapes are known.
std::vector<Output> run_open(Session& session, const Executable& executable, std::span<const InputView> in,
                             const RunOptions& options = {}) {
    std::vector<Output> outputs;
    session.run(
        in,
        [&](const std::vector<std::vector<std::int64_t>>& made) {
            for (std::size_t i = 0; i < made.size(); ++i) {
                const DType dtype = executable.outputs()[i].dtype;
                outputs.push_back(
                    {made[i], std::vector<std::byte>(bytes_of(dtype, ConstView{dtype, made[i]}.elements()))});
            }
            std::vector<OutputView> views;
            for (Output& o : outputs) views.push_back({o.bytes.data(), o.bytes.size()});
            return views;
        },
        options);
    return outputs;
}

/// Inputs that live as long as this.
class Inputs {
public:
    template <class T>
    Inputs& add(DType dtype, std::vector<std::int64_t> shape, const std::vector<T>& values) {
        const auto bytes = std::as_bytes(std::span(values));
        auto& copy = bytes_.emplace_back(bytes.begin(), bytes.end());
        shapes_.push_back(std::move(shape));
        views_.push_back({dtype, shapes_.back(), copy.data()});
        return *this;
    }
    operator std::span<const InputView>() const { return views_; }

private:
    std::deque<std::vector<std::byte>> bytes_;
    std::deque<std::vector<std::int64_t>> shapes_;
    std::vector<InputView> views_;
};

GraphPtr shared(Graph graph) { return std::make_shared<const Graph>(std::move(graph)); }

Dim n() { return Dim::symbolic("n"); }

/// x twice where the condition holds, else its first element.
Graph doubled_or_first() {
    TestGraph twice, first;
    const ValueId x = twice.input("x", {n()});
    twice.output("y", twice.op("concat", {x, x}, {{"axis", std::int64_t{0}}}));
    const ValueId all = first.input("x", {n()});
    first.output("y", first.op("slice", {all}, {{"starts", Integers{0}}, {"sizes", Integers{1}}}));
    TestGraph g;
    const ValueId condition = g.input("condition", {}, DType::u8), given = g.input("x", {n()});
    const Shape count{Dim::symbolic("k", 0)};
    const ValueId chosen = g.op("if", {condition, given, given},
                                {{"then_body", shared(twice.finish())},
                                 {"else_body", shared(first.finish())},
                                 {"then_values", std::int64_t{1}},
                                 {"results", count},
                                 {"counts", count}});
    g.output("y", g.op("add", {chosen, chosen}));
    return g.finish();
}

/// Adds the number of the iteration to what is carried, and collects it, until the sum exceeds the limit.
Graph sums(bool grows = false) {
    TestGraph body;
    const Dim m = grows ? Dim::symbolic("m", 0) : n();
    const ValueId i = body.input("i", {}, DType::i64), total = body.input("total", {m}),
                  limit = body.input("limit", {});
    const ValueId next = body.op("add", {total, body.op("cast", {i}, {{"data_type", DType::f32}})});
    const ValueId largest =
        body.op("reduce_max", {next}, {{"axes", Integers{0}}, {"keep_dimensions", false}});
    body.output("goes on", body.op("lesser", {largest, limit}));
    body.output("next", grows ? body.op("concat", {next, next}, {{"axis", std::int64_t{0}}}) : next);
    body.output("collected", largest);
    TestGraph g;
    const ValueId count = g.input("count", {}, DType::i64), x = g.input("x", {n()}),
                  most = g.input("limit", {});
    const Dim times = Dim::symbolic("times", 0), last = grows ? Dim::symbolic("last", 0) : n();
    const OpDef& loop = *find_op("loop");
    const auto results =
        must(g.builder.op(loop, {count, kNoValue, x, most},
                          NamedAttrs{{"body", shared(body.finish())},
                                     {"carried", std::int64_t{1}},
                                     {"results", Shape{last, times}},
                                     {"counts", grows ? Shape{last, times} : Shape{times}}}));
    g.output("total", results[0]);
    g.output("each", g.op("neg", {results[1]}));
    return g.finish();
}

Inputs loop_inputs(std::int64_t count, const std::vector<float>& x, float limit) {
    Inputs in;
    in.add<std::int64_t>(DType::i64, {}, {count})
        .add(DType::f32, {static_cast<std::int64_t>(x.size())}, x)
        .add<float>(DType::f32, {}, {limit});
    return in;
}

TEST(If, RunsOneOfItsBodies) {
    const Executable executable = compile(doubled_or_first());
    Session session(executable);
    const std::vector<float> x{1, 2, 3};
    const auto run = [&](std::uint8_t condition) {
        Inputs in;
        in.add<std::uint8_t>(DType::u8, {}, {condition}).add(DType::f32, {3}, x);
        return run_open(session, executable, in)[0].as();
    };
    EXPECT_THAT(run(1), ElementsAre(2, 4, 6, 2, 4, 6));
    EXPECT_THAT(run(0), ElementsAre(2));
    EXPECT_THAT(run(7), ElementsAre(2, 4, 6, 2, 4, 6)) << "anything but 0 is true";
}

TEST(Loop, EndsByItsCount) {
    const Executable executable = compile(sums());
    Session session(executable);
    const auto out = run_open(session, executable, loop_inputs(4, {1, 2}, 1000));
    EXPECT_THAT(out[0].as(), ElementsAre(7, 8));
    EXPECT_THAT(out[1].as(), ElementsAre(-2, -3, -5, -8));
    EXPECT_EQ(session.stats().iterations, 4);
}

TEST(Loop, EndsByItsCondition) {
    const Executable executable = compile(sums());
    Session session(executable);
    const auto out = run_open(session, executable, loop_inputs(INT64_MAX, {0}, 5));
    EXPECT_THAT(out[0].as(), ElementsAre(6));
    EXPECT_THAT(out[1].as(), ElementsAre(0, -1, -3, -6));
}

TEST(Loop, GivesWhatGoesInWhereItDoesNotRun) {
    const Executable executable = compile(sums());
    Session session(executable);
    const auto out = run_open(session, executable, loop_inputs(0, {3, 4}, 5));
    EXPECT_THAT(out[0].as(), ElementsAre(3, 4));
    EXPECT_THAT(out[1].shape, ElementsAre(0));
}

TEST(Loop, CarriesWhatChangesItsShape) {
    const Executable executable = compile(sums(true));
    Session session(executable);
    const auto out = run_open(session, executable, loop_inputs(3, {1}, 1000));
    EXPECT_THAT(out[0].as(), ElementsAre(4, 4, 4, 4, 4, 4, 4, 4));
    EXPECT_THAT(out[1].as(), ElementsAre(-1, -2, -4));
}

TEST(Loop, CollectsMoreThanItHasRoomForAtFirst) {
    const Executable executable = compile(sums());
    Session session(executable);
    const auto out = run_open(session, executable, loop_inputs(INT64_MAX, {0}, 5000));
    ASSERT_THAT(out[1].shape, ElementsAre(101));
    for (int i = 0; i < 101; ++i) EXPECT_EQ(out[1].as()[i], -i * (i + 1) / 2);
}

TEST(Loop, MeetsTheLimitOfTheCaller) {
    const Executable executable = compile(sums());
    Session session(executable);
    const Inputs in = loop_inputs(INT64_MAX, {-1e9}, 5);
    EXPECT_THAT(message_of([&] { run_open(session, executable, in, {.most_iterations = 100}); },
                           Code::invalid_argument),
                HasSubstr("loop: after 100 iterations it would go on"));
    EXPECT_THAT(run_open(session, executable, loop_inputs(2, {1}, 1000))[0].as(), ElementsAre(2))
        << "the session goes on working";
}

TEST(Loop, EndsWhenItsCallerWantsItToStop) {
    const Executable executable = compile(sums());
    Session session(executable);
    const Inputs in = loop_inputs(INT64_MAX, {-1e9}, 5);
    int asked = 0;
    const RunOptions options{.should_stop = [&] { return ++asked > 50; }};
    EXPECT_THAT(message_of([&] { run_open(session, executable, in, options); }, Code::cancelled),
                HasSubstr("the run was stopped by its caller"));
    EXPECT_EQ(asked, 51);
    EXPECT_THAT(run_open(session, executable, loop_inputs(2, {1}, 1000))[0].as(), ElementsAre(2))
        << "the session goes on working";
}

TEST(Loop, CountsTheIterationsOfLoopsInItsBodyToo) {
    TestGraph body;
    const ValueId i = body.input("i", {}, DType::i64), total = body.input("total", {n()}),
                  limit = body.input("limit", {});
    const Graph inner = sums();
    const Node& node = inner.nodes[0];
    const ValueId three = body.constant<std::int64_t>({}, {3}, DType::i64);
    const Dim times = Dim::symbolic("inner times", 0);
    NamedAttrs attrs{{"body", bodies(node)[0]},
                     {"carried", std::int64_t{1}},
                     {"results", Shape{n(), times}},
                     {"counts", Shape{times}}};
    const auto made = must(body.builder.op(*node.op, {three, kNoValue, total, limit}, attrs));
    body.output("goes on", body.op("equal", {i, i}));
    body.output("next", made[0]);
    TestGraph g;
    const ValueId count = g.input("count", {}, DType::i64), x = g.input("x", {n()}),
                  most = g.input("limit", {});
    g.output("y",
             g.op("loop", {count, kNoValue, x, most},
                  {{"body", shared(body.finish())}, {"carried", std::int64_t{1}}, {"results", Shape{n()}}}));
    const Executable executable = compile(g.finish());
    Session session(executable);
    EXPECT_THAT(run_open(session, executable, loop_inputs(4, {1, 2}, 1000))[0].as(), ElementsAre(13, 14));
    EXPECT_EQ(session.stats().iterations, 4 + 4 * 3);
    EXPECT_THAT(message_of(
                    [&] {
                        run_open(session, executable, loop_inputs(4, {1, 2}, 1000), {.most_iterations = 10});
                    },
                    Code::invalid_argument),
                HasSubstr("iteration 2: loop: after"));
}

TEST(ControlFlow, IsKeptByGraphFilesAndPrinted) {
    const Graph graph = sums();
    const auto bytes = std::make_shared<const std::vector<std::byte>>(must(graph_bytes(graph)));
    const Graph read = must(graph_from_bytes(bytes, *bytes, find_op));
    EXPECT_EQ(print(read), print(graph));
    EXPECT_THAT(print(graph), HasSubstr("    body:\n        input    %0 \"i\" : i64[]\n"));
    const Executable executable = compile(read);
    Session session(executable);
    EXPECT_THAT(run_open(session, executable, loop_inputs(4, {1, 2}, 1000))[0].as(), ElementsAre(7, 8));
}

TEST(ControlFlow, TakesNoMoreStagesThanItNeeds) {
    const Executable executable = compile(doubled_or_first());
    EXPECT_EQ(executable.stats().plans, 0);
    Session session(executable);
    Inputs in;
    in.add<std::uint8_t>(DType::u8, {}, {1}).add<float>(DType::f32, {2}, {1, 2});
    run_open(session, executable, in);
    EXPECT_EQ(executable.stats().plans, 2) << "one of the body that ran and one of what follows";
}

TEST(ReadExtents, MakesNumbersExtents) {
    TestGraph g;
    const ValueId x = g.input("x", {}), sizes = g.input("sizes", {2}, DType::i64);
    const Shape wanted{Dim::symbolic("a", 0), Dim::symbolic("b", 1)};
    g.op("read_extents", {sizes}, {{"counts", wanted}});
    g.output("y", g.op("expand", {x}, {{"new_shape", wanted}}));
    const Executable executable = compile(g.finish());
    Session session(executable);
    const auto run = [&](std::int64_t a, std::int64_t b) {
        Inputs in;
        in.add<float>(DType::f32, {}, {3}).add<std::int64_t>(DType::i64, {2}, {a, b});
        return run_open(session, executable, in)[0];
    };
    EXPECT_THAT(run(2, 1).as(), ElementsAre(3, 3));
    EXPECT_THAT(run(0, 5).as(), IsEmpty());
    EXPECT_THAT(message_of([&] { run(2, 0); }, Code::invalid_argument),
                HasSubstr("read_extents: element 1 is 0, which cannot be the extent b of at least 1"));
}

}  // namespace
}  // namespace headrace::testing
