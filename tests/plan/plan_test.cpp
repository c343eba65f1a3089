#include "plan/plan.h"

#include <gtest/gtest.h>

#include "ir/graph_builder.h"
#include "ir/specialize.h"
#include "ops/catalog.h"

namespace headrace {
namespace {

/// relu(x) of f32[n, 4], and relu(v) of f32[4] beside it.
Graph two_parts() {
    GraphBuilder b;
    const ValueId x = b.input("x", {DType::f32, {Dim::symbolic("n"), 4}}).value();
    const ValueId v = b.input("v", {DType::f32, {4}}).value();
    EXPECT_TRUE(b.mark_output("y", b.op(*find_op("relu"), {x}).value()[0]).ok());
    EXPECT_TRUE(b.mark_output("w", b.op(*find_op("relu"), {v}).value()[0]).ok());
    return b.finish().value();
}

TEST(Replan, DecidesAsMakePlanDoes) {
    const Graph graph = two_parts();
    const SymbolUses uses(graph);
    PackedConstants packed;
    const SymbolBindings before{{"n", 3}}, now{{"n", 30}};
    const Plan first = make_plan(specialize(graph, before).value(), {}, packed).value();
    const Plan whole = make_plan(specialize(graph, now).value(), {}, packed).value();
    Plan again = first;
    again.graph = specialize(graph, now).value();
    ASSERT_TRUE(replan(again, {}, packed, uses.changed_nodes(before, now)).ok());
    EXPECT_EQ(again.flops, whole.flops);
    EXPECT_EQ(again.bytes, whole.bytes);
    for (std::size_t i = 0; i < whole.nodes.size(); ++i)
        EXPECT_EQ(name_of(again.nodes[i]), name_of(whole.nodes[i]));
}

}  // namespace
}  // namespace headrace
