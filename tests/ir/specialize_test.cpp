#include "ir/specialize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/print.h"
#include "ir/sample_ops.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;

/// sum(x, y) of f32[batch, seq], and twice(v) of f32[batch] beside it.
Graph two_parts() {
    GraphBuilder b;
    const Dim batch = Dim::symbolic("batch", 1, 8);
    const TensorType type{DType::f32, {batch, Dim::symbolic("seq")}};
    const ValueId x = b.input("x", type).value(), y = b.input("y", type).value();
    const ValueId v = b.input("v", {DType::f32, {batch}}).value();
    const NamedAttrs attrs{{"shape", type.shape}};
    const ValueId z = b.op(sample_op("everything"), {x}, attrs).value()[0];
    (void)b.mark_output("sum", b.op(sample_op("sum"), {z, y}).value()[0]);
    (void)b.mark_output("twice", b.op(sample_op("twice"), {v}).value()[0]);
    return b.finish().value();
}

TEST(SymbolUses, NameTheNodesThatOtherNumbersChange) {
    const SymbolUses uses(two_parts());
    const SymbolBindings before{{"batch", 2}, {"seq", 7}};
    EXPECT_THAT(uses.changed_nodes(before, before), ElementsAre(false, false, false));
    EXPECT_THAT(uses.changed_nodes(before, {{"batch", 2}, {"seq", 8}}), ElementsAre(true, true, false));
    EXPECT_THAT(uses.changed_nodes(before, {{"batch", 3}, {"seq", 7}}), ElementsAre(true, true, true));
    EXPECT_THAT(uses.changed_nodes(before, {{"seq", 7}}), ElementsAre(true, true, true));
}

TEST(SpecializeChanges, GivesWhatSpecializeGives) {
    const Graph graph = two_parts();
    const SymbolUses uses(graph);
    SymbolBindings before{{"batch", 2}, {"seq", 7}};
    Graph concrete = specialize(graph, before).value();
    for (const SymbolBindings& now : {SymbolBindings{{"batch", 2}, {"seq", 8}}, {{"batch", 3}, {"seq", 8}}}) {
        const auto status = specialize_changes(graph, now, concrete, uses.changed_nodes(before, now),
                                               uses.changed_conditions(before, now));
        ASSERT_TRUE(status.ok()) << status.error().message;
        EXPECT_EQ(print(concrete), print(specialize(graph, now).value()));
        before = now;
    }
}

TEST(SpecializeChanges, ChecksTheConditionsThatNumbersChange) {
    Graph graph = two_parts();
    const Dim seq = graph.value(graph.inputs[0]).type.shape[1];
    graph.conditions.push_back({Condition::Kind::at_least, seq, 5, "the node"});
    const SymbolUses uses(graph);
    const SymbolBindings before{{"batch", 2}, {"seq", 7}}, now{{"batch", 2}, {"seq", 4}};
    Graph concrete = specialize(graph, before).value();
    const auto status = specialize_changes(graph, now, concrete, uses.changed_nodes(before, now),
                                           uses.changed_conditions(before, now));
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message, specialize(graph, now).error().message);
}

}  // namespace
}  // namespace headrace::testing
