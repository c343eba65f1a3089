#include <gtest/gtest.h>

#include "passes/interpret.h"
#include "passes/tiny_graph.h"

namespace headrace::testing {
namespace {

using Extents = std::vector<std::int64_t>;

/// A cache [2, 4, 3] of which each run replaces two slices of the middle dimension.
struct Cache : TinyGraph {
    ValueId cache = state("cache", {2, 4, 3}), update = input("update", {2, 2, 3});
    ValueId positions = input("positions", {2}, DType::i32);

    ValueId scattered(ValueId column, std::int64_t axis = 1) {
        const ValueId indices = op("expand", {column}, {{"new_shape", Extents{2, 2, 3}}});
        return op("scatter_elements", {cache, indices, update}, {{"axis", axis}});
    }
    ValueId column() { return op("reshape", {positions}, {{"new_shape", Extents{2, 1}}}); }

    /// The formula of y after the pass, which must compute the same.
    std::string updated(ValueId y) {
        output("y", y);
        Graph graph = finish();
        const Graph before = graph;
        counts = run_pass("update_states_in_place", graph);
        expect_same_results(before, graph);
        return formula(graph, "y");
    }
    Counts counts;
};

TEST(UpdateStatesInPlace, WritesOnlyTheSlicesThatChange) {
    for (const std::int64_t axis : {1, -2}) {
        Cache t;
        const ValueId next = t.scattered(t.column(), axis);
        const ValueId y = t.op("exp", {next});
        t.op("assign", {t.cache, next});
        const std::string name = axis == 1 ? "{axis=1}" : "{axis=-2}";
        EXPECT_EQ(t.updated(y), "exp(cache_update(cache, positions, update) " + name + ")");
        EXPECT_EQ(t.counts, (Counts{{"updates", 1}}));
    }
}

TEST(UpdateStatesInPlace, LetsReadersOfTheAssignmentReadTheUpdate) {
    Cache t;
    const ValueId sum = t.op("reduce_sum", {t.cache});  // before the update
    const ValueId assigned = t.op("assign", {t.cache, t.scattered(t.column())});
    t.output("sum", sum);
    EXPECT_EQ(t.updated(t.op("exp", {assigned})), "exp(cache_update(cache, positions, update) {axis=1})");
}

TEST(UpdateStatesInPlace, LeavesStatesWhoseOldContentIsReadLater) {
    Cache t;
    const ValueId next = t.scattered(t.column());
    t.output("old", t.op("exp", {t.cache}));
    EXPECT_EQ(t.updated(t.op("assign", {t.cache, next})).substr(0, 6), "assign");
    EXPECT_EQ(t.counts, (Counts{{"updates", 0}}));
}

TEST(UpdateStatesInPlace, LeavesIndicesThatDifferFromElementToElement) {
    {
        Cache t;  // along the last dimension, not the axis
        const ValueId row = t.input("row", {3}, DType::i32);
        EXPECT_EQ(t.updated(t.op("assign", {t.cache, t.scattered(row)})).substr(0, 6), "assign");
    }
    {
        Cache t;
        const ValueId matrix = t.input("matrix", {2, 1, 1}, DType::i32);
        EXPECT_EQ(t.updated(t.op("assign", {t.cache, t.scattered(matrix)})).substr(0, 6), "assign");
    }
}

}  // namespace
}  // namespace headrace::testing
