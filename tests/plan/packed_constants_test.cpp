#include "plan/packed_constants.h"

#include <gtest/gtest.h>

#include "ir/graph_builder.h"
#include "ops/op.h"
#include "plan/plan.h"

namespace headrace {
namespace {

int packs = 0;

/// y = x · 2 where "packing" is counted.
struct Doubled {
    static constexpr std::string_view name = "doubled", summary = "test";
    static constexpr std::array operands{OperandRule{.name = "x", .dtypes = kFloats},
                                         OperandRule{.name = "w", .dtypes = kFloats, .optional = true}};
    struct Attrs {
        std::int64_t way = 0;
        static void fields(auto&& f) { f("way", &Attrs::way, "part of the cache key"); }
    };
    static Result<Types> infer(const Operands& in, const Attrs&) { return Types{in[0]}; }
    static void reference(const TensorArgs&, const Attrs&) {}
    static inline const std::array<KernelDef, 1> kernels{
        KernelDef{.name = "counted",
                  .applies = [](const Operands& in, std::span<const bool> constant,
                                const void*) { return in.has(1) && constant[1]; },
                  .packed_operand = 1,
                  .packed_bytes = [](const Operands& in, const void*) { return in[1].bytes(); },
                  .pack = [](const ConstView&, const void*, std::byte*) { ++packs; },
                  .run = [](const TensorArgs&, const void*) {}}};
};

Graph three_nodes_with_one_weight(std::int64_t third_way) {
    static const OpDef op = make_def<Doubled>();
    GraphBuilder b;
    const ValueId x = b.input("x", {DType::f32, {4}}).value();
    const std::vector<float> bytes(4, 1.0f);
    const ValueId w = b.constant({DType::f32, {4}}, std::as_bytes(std::span(bytes))).value();
    ValueId v = b.op(op, {x, w}).value()[0];
    v = b.op(op, {v, w}).value()[0];
    v = b.op(op, {v, w}, NamedAttrs{{"way", third_way}}).value()[0];
    EXPECT_TRUE(b.mark_output("y", v).ok());
    return b.finish().value();
}

TEST(PackedConstants, PackOncePerConstantAndWayOfUse) {
    for (const std::int64_t way : {0, 1}) {
        packs = 0;
        PackedConstants packed;
        const Graph graph = three_nodes_with_one_weight(way);
        for (int shape_key = 0; shape_key < 2; ++shape_key) ASSERT_TRUE(make_plan(graph, {}, packed).ok());
        EXPECT_EQ(packs, way == 0 ? 1 : 2);
        EXPECT_EQ(packed.bytes(), way == 0 ? 16u : 32u);
    }
}

TEST(Plan, WithoutPackedKernelsPacksNothing) {
    packs = 0;
    PackedConstants packed;
    const auto plan = make_plan(three_nodes_with_one_weight(0), {.packed_kernels = false}, packed);
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(packs, 0);
    EXPECT_EQ(name_of(plan.value().nodes[0]), "reference");
}

}  // namespace
}  // namespace headrace
