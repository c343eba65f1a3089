/// Every op of the catalog, and random graphs, on devices with random limits.
#include <gmock/gmock.h>

#include "run/limited/filled_run.h"
#include "run/limited/limited_device.h"

namespace headrace {
namespace {

using namespace testing;
using ::testing::IsEmpty;

/// A number up to `most` whose logarithm is uniform.
std::size_t some_bytes(std::mt19937& random, double most) {
    return static_cast<std::size_t>(std::exp(std::uniform_real_distribution<>(0, std::log(most))(random)));
}

Limits random_limits(std::mt19937& random, double most_bytes) {
    Limits limits;
    if (random() % 4) limits.tensor_bytes = some_bytes(random, most_bytes);
    if (random() % 4 == 0) limits.buffer_bytes = some_bytes(random, most_bytes);
    for (int i = 0; i < 3; ++i)
        if (random() % 2) limits.refused_ops.insert(static_cast<ggml_op>(random() % GGML_OP_COUNT));
    if (random() % 4 == 0) limits.refused_types.insert(static_cast<ggml_type>(random() % GGML_TYPE_COUNT));
    return limits;
}

std::string describe(const Limits& limits) {
    std::string text =
        fmt::format("tensors of {}, buffers of {}, without", limits.tensor_bytes, limits.buffer_bytes);
    for (ggml_op op : limits.refused_ops) text += fmt::format(" {}", ggml_op_name(op));
    for (ggml_type type : limits.refused_types) text += fmt::format(" {}", ggml_type_name(type));
    return text;
}

TEST(RandomLimits, EverySampleOfEveryOpGivesWhatTheReferenceGives) {
    std::mt19937 random(1);
    int on_device = 0, not_there = 0;
    for (const Case& c : all_cases()) {
        const Built built = build(c);
        const Outcome reference =
            execute(built, {.threads = 1, .packed_kernels = false, .native_ops = false});
        for (int turn = 0; turn < 4; ++turn) {
            LimitedDevice device(turn == 0 ? Limits{} : random_limits(random, 1024));
            SCOPED_TRACE(fmt::format("{} {}: {}", c.op->name, c.index, describe(device.limits())));
            const Outcome outcome = execute(built, {.device = device.name(), .threads = 1});
            if (turn > 0) ++(outcome.device == device.name() ? on_device : not_there);
            for (std::size_t i = 0; i < outcome.outputs.size(); ++i)
                expect_same(built.graph.value(built.graph.outputs[i].second).type, outcome.outputs[i],
                            reference.outputs[i], c.sample.tolerance);
            EXPECT_THAT(device.violations(), IsEmpty());
            if (::testing::Test::HasFailure()) return;
        }
    }
    EXPECT_GT(on_device, 100);
    EXPECT_GT(not_there, 100);
}

/// Some nodes of ops that the device has and that it lacks, with constants and states among their operands.
class RandomGraph {
public:
    explicit RandomGraph(unsigned seed) : random_(seed) {
        for (int i = 0; i < 1 + pick(2); ++i) keep(g_.input("x" + std::to_string(i), shape()));
        if (pick(2)) {
            const Shape of = types_.front();
            const ValueId state = g_.state("s", of);
            keep_as(g_.op("accumulate", {state, values_.front()}), of);
        }
        keep(constant(shape()));
    }

    Graph finish() {
        const int nodes = 1 + pick(12);
        for (int i = 0; i < nodes; ++i) add_node();
        return finish_with_outputs(4);
    }
    /// All values are read at the end.
    Graph finish_large(int nodes) {
        for (int i = 0; i < nodes; ++i) add_node();
        ValueId total = kNoValue;
        for (const ValueId value : values_) {
            const ValueId part = g_.op("tanh", {g_.op("reduce_mean", {value})});
            total = total == kNoValue ? part : g_.op("add", {total, part});
        }
        g_.output("total", total);
        return finish_with_outputs(10);
    }

private:
    Graph finish_with_outputs(int part) {
        for (std::size_t i = 0; i < values_.size(); ++i)
            if (i + 1 == values_.size() || pick(part) == 0) g_.output("y" + std::to_string(i), values_[i]);
        return g_.finish();
    }

    int pick(int choices) { return static_cast<int>(random_() % static_cast<unsigned>(choices)); }
    Shape shape() { return last_ = {1 + pick(12), 1 + pick(12)}; }
    void keep(ValueId id) { keep_as(id, last_); }
    void keep_as(ValueId id, const Shape& type) {
        values_.push_back(id);
        types_.push_back(type);
    }
    ValueId constant(const Shape& type) {
        const auto n = static_cast<std::size_t>(type[0].size() * type[1].size());
        return g_.constant<float>(last_ = type, random_floats(n, static_cast<unsigned>(random_())));
    }
    void add_node();

    std::mt19937 random_;
    TestGraph g_;
    std::vector<ValueId> values_;
    std::vector<Shape> types_;
    Shape last_;
};

void RandomGraph::add_node() {
    const auto at = static_cast<std::size_t>(pick(static_cast<int>(values_.size())));
    const ValueId x = values_[at];
    const Shape type = types_[at];
    const std::int64_t rows = type[0].size(), columns = type[1].size(), half = (rows + 1) / 2;
    const std::int64_t wide = 1 + pick(12);
    switch (pick(12)) {
        case 0: return keep_as(g_.op("tanh", {x}), type);
        case 1: return keep_as(on_the_cpu(g_, x), type);
        case 2: return keep_as(g_.op("matmul", {x, constant({columns, wide})}), {rows, wide});
        case 3: return keep_as(g_.op("add", {x, constant(pick(2) ? type : Shape{1, columns})}), type);
        case 4: return keep_as(g_.op("mul", {x, g_.op("sigmoid", {x})}), type);
        case 5:
            return keep_as(g_.op("transpose", {x}, {{"permutation", std::vector<std::int64_t>{1, 0}}}),
                           {columns, rows});
        case 6:
            return keep_as(g_.op("reshape", {x}, {{"new_shape", Shape{1, rows * columns}}}),
                           {1, rows * columns});
        case 7:
            return keep_as(g_.op("slice", {x},
                                 {{"starts", std::vector<std::int64_t>{rows - half, 0}},
                                  {"sizes", Shape{half, columns}}}),
                           {half, columns});
        case 8:
            if (rows > 64) return keep_as(g_.op("neg", {x}), type);
            return keep_as(g_.op("concat", {x, constant(type)}, {{"axis", std::int64_t{0}}}),
                           {2 * rows, columns});
        case 9: return keep_as(g_.op("softmax", {x}, {{"axis", std::int64_t{pick(2)}}}), type);
        case 10:
            return keep_as(
                g_.op("reduce_sum", {x}, {{"axes", std::vector<std::int64_t>{1}}, {"keep_dimensions", true}}),
                {rows, 1});
        default:
            return keep_as(g_.op("slice", {x},
                                 {{"starts", std::vector<std::int64_t>{0, columns / 2}},
                                  {"sizes", Shape{rows, columns - columns / 2}}}),
                           {rows, columns - columns / 2});
    }
}

TEST(RandomLimits, RandomGraphsGiveWhatTheCpuGives) {
    std::mt19937 random(2);
    std::int64_t mixed = 0;
    for (unsigned seed = 0; seed < 400; ++seed) {
        const Graph graph = RandomGraph(seed).finish();
        LimitedDevice device(random_limits(random, 1024));
        device.limits().buffer_bytes = SIZE_MAX;
        SCOPED_TRACE(fmt::format("graph {}: {}", seed, describe(device.limits())));
        CompileOptions options{.device = device.name(), .threads = 1};
        if (random() % 2) options.disabled_passes = {"fold_constants", "eliminate_no_ops"};
        const Ran ran = run_filled(graph, options);
        expect_same_outputs(graph, ran, run_filled(graph, {.threads = 1}));
        EXPECT_THAT(device.violations(), IsEmpty());
        const std::int64_t there = ran.nodes_on(device.name());
        mixed += there > 0 && there < static_cast<std::int64_t>(ran.stats.nodes.size());
        if (::testing::Test::HasFailure()) return;
    }
    EXPECT_GT(mixed, 50);
}

/// So many values that ggml's allocator does not take the graph.
TEST(RandomLimits, LargeRandomGraphsGiveWhatTheReferenceKernelsGive) {
    std::mt19937 random(4);
    int computed = 0;
    for (unsigned seed = 0; seed < 30; ++seed) {
        const Graph graph = RandomGraph(seed).finish_large(600);
        const Ran expected = run_filled(graph, {.threads = 1, .packed_kernels = false, .native_ops = false});
        SCOPED_TRACE(seed);
        expect_same_outputs(graph, run_filled(graph, {.threads = 1}), expected, 1e-3);
        LimitedDevice device(random_limits(random, 1 << 14));
        SCOPED_TRACE(describe(device.limits()));
        try {
            const Ran ran = run_filled(graph, {.device = device.name(), .threads = 1});
            expect_same_outputs(graph, ran, expected, 1e-3);
            ++computed;
        } catch (const Exception& e) {
            EXPECT_TRUE(e.code() == Code::unsupported || e.code() == Code::out_of_memory) << e.what();
        }
        EXPECT_THAT(device.violations(), IsEmpty());
        if (::testing::Test::HasFailure()) return;
    }
    EXPECT_GT(computed, 10);
}

TEST(RandomLimits, WithLittleMemoryAGraphIsComputedOrRefusedAndLeavesNothingBehind) {
    std::mt19937 random(3);
    int refused = 0, computed = 0;
    for (unsigned seed = 0; seed < 200; ++seed) {
        const Graph graph = RandomGraph(seed).finish();
        LimitedDevice device(random_limits(random, 1024));
        device.limits().memory_bytes = some_bytes(random, 1 << 14);
        SCOPED_TRACE(fmt::format("graph {}: {} bytes, {}", seed, device.limits().memory_bytes,
                                 describe(device.limits())));
        try {
            const Ran ran = run_filled(graph, {.device = device.name(), .threads = 1});
            expect_same_outputs(graph, ran, run_filled(graph, {.threads = 1}));
            ++computed;
        } catch (const Exception& e) {
            EXPECT_EQ(e.code(), Code::out_of_memory) << e.what();
            EXPECT_THAT(e.what(), ::testing::HasSubstr(device.name()));
            ++refused;
        }
        EXPECT_EQ(device.bytes_in_use(), 0u);
        EXPECT_THAT(device.violations(), IsEmpty());
        if (::testing::Test::HasFailure()) return;
    }
    EXPECT_GT(refused, 20);
    EXPECT_GT(computed, 20);
}

}  // namespace
}  // namespace headrace
