#include "plan/packed_constants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "ir/graph_builder.h"
#include "ir/one_pass_reader.h"
#include "ops/catalog.h"
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

/// Weights of a file that begin one byte beyond a multiple of 64; element i of weight w is w + i.
struct FileOfWeights {
    static constexpr std::size_t kElements = 8192;
    std::vector<std::vector<std::byte>> bytes;

    ValueId add(GraphBuilder& b, int weight) {
        std::vector<float> elements(kElements);
        for (std::size_t i = 0; i < kElements; ++i)
            elements[i] = static_cast<float>(i) + static_cast<float>(weight);
        auto& stored = bytes.emplace_back(kElements * sizeof(float) + 128);
        const auto place = 64 - reinterpret_cast<std::uintptr_t>(stored.data()) % 64 + 1;
        const std::span at(stored.data() + place, kElements * sizeof(float));
        std::memcpy(at.data(), elements.data(), at.size());
        auto constant = std::make_shared<const Constant>(
            Constant{.bytes = at, .owner = nullptr, .mapped = true, .key = ""});
        return b.constant({DType::f32, {kElements}}, std::move(constant)).value();
    }
    Graph graph(const OpDef& op, int count) {
        GraphBuilder b;
        ValueId v = b.input("x", {DType::f32, {4}}).value();
        for (int w = 0; w < count; ++w) v = b.op(op, {v, add(b, w)}).value()[0];
        EXPECT_TRUE(b.mark_output("y", v).ok());
        return b.finish().value();
    }
};

/// Keeps what it is given to pack.
struct Copied : Doubled {
    static constexpr std::string_view name = "copied";
    static inline const std::array<KernelDef, 1> kernels{
        KernelDef{.name = "copying",
                  .applies = [](const Operands& in, std::span<const bool> constant,
                                const void*) { return in.has(1) && constant[1]; },
                  .packed_operand = 1,
                  .packed_bytes = [](const Operands& in, const void*) { return in[1].bytes(); },
                  .pack =
                      [](const ConstView& plain, const void*, std::byte* packed) {
                          const auto* from = reinterpret_cast<const float*>(plain.data);
                          std::copy_n(from, plain.elements(), reinterpret_cast<float*>(packed));
                      },
                  .run = [](const TensorArgs&, const void*) {}}};
};

TEST(PackedConstants, ArePackedOnSeveralThreadsWhereverAFileHasThem) {
    static const OpDef op = make_def<Copied>();
    FileOfWeights file;
    constexpr std::size_t kWeights = 40;
    const Graph graph = file.graph(op, kWeights);
    PackedConstants packed;
    const auto plan = make_plan(graph, {.threads = 4}, packed);
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(packed.bytes(), kWeights * FileOfWeights::kElements * sizeof(float));
    EXPECT_TRUE(plan.value().aligned.empty()) << "nobody reads them plain";
    for (std::size_t w = 0; w < kWeights; ++w) {
        const auto* elements = reinterpret_cast<const float*>(plan.value().nodes[w].packed.get());
        for (std::size_t i = 0; i < FileOfWeights::kElements; ++i)
            ASSERT_EQ(elements[i], static_cast<float>(i) + static_cast<float>(w));
    }
}

/// The same by parts of some elements.
struct CopiedInParts : Doubled {
    static constexpr std::string_view name = "copied_in_parts";
    static inline const std::array<KernelDef, 1> kernels{
        KernelDef{.name = "copying_parts",
                  .applies = [](const Operands& in, std::span<const bool> constant,
                                const void*) { return in.has(1) && constant[1]; },
                  .packed_operand = 1,
                  .packed_bytes = [](const Operands& in, const void*) { return in[1].bytes(); },
                  .pack =
                      [](const ConstView& plain, const void*, std::byte* packed) {
                          OnePassReader from(plain);
                          auto* to = reinterpret_cast<float*>(packed);
                          for (std::int64_t left = plain.elements(); left > 0;) {
                              const std::int64_t count = std::min<std::int64_t>(left, 1000);
                              to = std::copy_n(from.next<float>(static_cast<std::size_t>(count)), count, to);
                              left -= count;
                          }
                      },
                  .run = [](const TensorArgs&, const void*) {},
                  .packs_in_one_pass = true}};
};

TEST(PackedConstants, AreOfElementsTimesTheirFactorsWhetherTheyAreReadAtOnceOrInParts) {
    static const std::array ops{make_def<Copied>(), make_def<CopiedInParts>()};
    for (const bool is_packed : {true, false})
        for (const OpDef& op : ops) {
            FileOfWeights file;
            Graph graph = file.graph(op, 1);
            Value& weight = graph.value(graph.nodes[0].inputs[1]);
            Constant multiplied = *weight.constant;
            multiplied.factors = std::make_shared<const ElementFactors>(ElementFactors{{2, -3, 0.5}, 64});
            weight.constant = std::make_shared<const Constant>(multiplied);
            PackedConstants packed;
            const auto plan = make_plan(graph, {.packed_kernels = is_packed}, packed);
            ASSERT_TRUE(plan.ok());
            const std::byte* made = is_packed ? plan.value().nodes[0].packed.get()
                                              : plan.value().aligned.at(weight.constant.get()).get();
            for (std::size_t i = 0; i < FileOfWeights::kElements; ++i)
                ASSERT_EQ(reinterpret_cast<const float*>(made)[i],
                          static_cast<float>(i) * static_cast<float>(multiplied.factors->values[i / 64 % 3]))
                    << op.name << " " << i;
        }
}

TEST(Plan, HasWhatNodesReadPlainWhereKernelsCanReadIt) {
    static const OpDef op = make_def<Copied>();
    FileOfWeights file;
    const Graph graph = file.graph(op, 2);
    PackedConstants packed;
    const auto plan = make_plan(graph, {.packed_kernels = false}, packed);
    ASSERT_TRUE(plan.ok());
    ASSERT_EQ(plan.value().aligned.size(), 2U);
    for (const auto& [constant, copy] : plan.value().aligned) {
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(copy.get()) % 16, 0U);
        EXPECT_EQ(std::memcmp(copy.get(), constant->bytes.data(), constant->bytes.size()), 0);
    }
    const auto again = make_plan(graph, {.packed_kernels = false}, packed);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again.value().aligned, plan.value().aligned) << "all plans share one copy";
}

TEST(Plan, LeavesInTheFileWhatNodesOnlyCopy) {
    FileOfWeights file;
    GraphBuilder b;
    const ValueId table = file.add(b, 0), at = b.input("at", {DType::i64, {4}}).value();
    ASSERT_TRUE(b.mark_output("y", b.op(*find_op("gather"), {table, at}).value()[0]).ok());
    PackedConstants packed;
    const auto plan = make_plan(b.finish().value(), {}, packed);
    ASSERT_TRUE(plan.ok());
    EXPECT_TRUE(plan.value().aligned.empty());
}

TEST(Plan, WithoutPackedKernelsPacksNothing) {
    packs = 0;
    PackedConstants packed;
    const auto plan = make_plan(three_nodes_with_one_weight(0), {.packed_kernels = false}, packed);
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(packs, 0);
    EXPECT_EQ(name_of(plan.value().nodes[0]), "reference");
}

TEST(PackedConstants, OfOneFileAreSharedByExecutables) {
    static const OpDef op = make_def<Doubled>();
    const std::vector<float> elements(64, 1);
    const auto owner = std::make_shared<const int>(0);
    const auto graph = [&](const std::shared_ptr<const void>& owned_by) {
        GraphBuilder b;
        const auto constant = std::make_shared<const Constant>(
            Constant{.bytes = std::as_bytes(std::span(elements)), .owner = owned_by, .mapped = true});
        const ValueId x = b.input("x", {DType::f32, {4}}).value();
        const ValueId w = b.constant({DType::f32, {64}}, constant).value();
        const ValueId y = b.op(op, {x, w}).value()[0];
        EXPECT_TRUE(b.mark_output("y", y).ok());
        return b.finish().value();
    };
    packs = 0;
    PackedConstants one, other, callers, same;
    const auto first = make_plan(graph(owner), {}, one), second = make_plan(graph(owner), {}, other);
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_EQ(packs, 1);
    EXPECT_EQ(first.value().nodes[0].packed, second.value().nodes[0].packed);
    EXPECT_EQ(other.bytes(), 256u);
    // Memory that only its caller has may hold something else the next time.
    const auto third = make_plan(graph(nullptr), {}, callers), fourth = make_plan(graph(nullptr), {}, same);
    ASSERT_TRUE(third.ok() && fourth.ok());
    EXPECT_EQ(packs, 3);
}

}  // namespace
}  // namespace headrace
