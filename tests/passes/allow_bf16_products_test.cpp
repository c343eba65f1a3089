#include <gmock/gmock.h>

#include "passes/tiny_graph.h"

namespace headrace {
namespace {

using namespace testing;

constexpr const char* kPass = "allow_bf16_products";

Graph dense(std::int64_t columns, DType dtype = DType::f32) {
    TinyGraph g;
    const ValueId x = g.input("x", {4, 64});
    const ValueId w = dtype == DType::f32 ? g.constant("w", {64, columns})
                                          : g.constant("w", dtype, {64, columns},
                                                       std::vector<std::uint16_t>(64 * columns, 0x3f80));
    g.output("y", g.op("fused_matmul", {x, w}, {{"activation", std::string("relu")}}));
    return g.finish();
}

Graph convolution(Shape filter, std::int64_t groups = 1, const char* op = "conv2d") {
    TinyGraph g;
    const ValueId x = g.input("x", {1, 32, 8, 8}), w = g.constant("w", std::move(filter));
    g.output("y", g.op(op, {x, w}, {{"groups", groups}}));
    return g.finish();
}

std::string after_pass(Graph graph, bool allowed = true) {
    run_pass(kPass, graph, {.round_to_bf16 = allowed});
    return formula(graph, "y");
}

TEST(AllowBf16Products, MarksProductsOfF32WithConstantMatrices) {
    EXPECT_EQ(after_pass(dense(64)), "fused_matmul(x, w) {activation=\"relu\", round_to_bf16=true}");
    EXPECT_EQ(after_pass(dense(64, DType::bf16)),
              "fused_matmul(x, w) {activation=\"relu\", round_to_bf16=true}");
    TinyGraph g;
    g.output("y", g.op("gemm", {g.input("x", {4, 64}), g.constant("w", {48, 64}), g.constant("b", {48})},
                       {{"b_transpose", true}}));
    EXPECT_EQ(after_pass(g.finish()), "fused_matmul(x, w, b) {transpose_b=true, round_to_bf16=true}");
}

TEST(AllowBf16Products, MarksConvolutionsButNotThoseOfSingleChannels) {
    EXPECT_EQ(after_pass(convolution({48, 32, 3, 3})), "fused_conv2d(x, w) {round_to_bf16=true}");
    EXPECT_EQ(after_pass(convolution({48, 16, 3, 3}, 2, "fused_conv2d")),
              "fused_conv2d(x, w) {groups=2, round_to_bf16=true}");
    EXPECT_EQ(after_pass(convolution({64, 1, 5, 5}, 32)), "conv2d(x, w) {groups=32}");
}

TEST(AllowBf16Products, MarksAttention) {
    TinyGraph g;
    const ValueId q = g.input("q", {2, 4, 8}), k = g.input("k", {2, 6, 8});
    g.output("y", g.op("scaled_dot_product_attention", {q, k, k}));
    EXPECT_EQ(after_pass(g.finish()), "scaled_dot_product_attention(q, k, k) {round_to_bf16=true}");
}

TEST(AllowBf16Products, MarksTheStepsOfAnLstm) {
    TinyGraph g;
    const auto made = g.many("lstm_recurrence", {g.input("x", {3, 1, 128}), g.constant("r", {1, 128, 32})},
                             {{"hidden_size", std::int64_t{32}}});
    g.output("y", made[0]);
    EXPECT_THAT(after_pass(g.finish()), ::testing::HasSubstr("round_to_bf16=true"));
}

TEST(AllowBf16Products, LeavesSmallMatricesOtherTypesAndMatricesThatARunGives) {
    EXPECT_EQ(after_pass(dense(8)), "fused_matmul(x, w) {activation=\"relu\"}");
    EXPECT_EQ(after_pass(dense(64, DType::f16)), "fused_matmul(x, w) {activation=\"relu\"}");
    TinyGraph g;
    g.output("y", g.op("matmul", {g.input("x", {4, 64}), g.input("w", {64, 64})}));
    EXPECT_EQ(after_pass(g.finish()), "matmul(x, w)");
}

TEST(AllowBf16Products, LetsTheOtherOperandOfAMatrixInBlocksBeRoundedToBytes) {
    const auto after = [](bool round_activations) {
        TinyGraph g;
        const TensorType type{DType::f32, {48, 64}, BlockFormat::q4_0_f32};
        const ValueId w = must(g.builder.constant(type, std::vector<std::byte>(type.bytes()), "w"));
        g.output("y", g.op("fused_matmul", {g.input("x", {4, 64}), w}, {{"transpose_b", true}}));
        Graph graph = g.finish();
        run_pass(kPass, graph, {.round_activations = round_activations, .round_to_bf16 = true});
        return formula(graph, "y");
    };
    EXPECT_EQ(after(true), "fused_matmul(x, w) {transpose_b=true, round_a=true}");
    EXPECT_EQ(after(false), "fused_matmul(x, w) {transpose_b=true}");
}

TEST(AllowBf16Products, DoesNothingUnlessAsked) {
    EXPECT_EQ(after_pass(dense(64), false), "fused_matmul(x, w) {activation=\"relu\"}");
    EXPECT_EQ(after_pass(convolution({48, 32, 3, 3}), false), "conv2d(x, w)");
}

}  // namespace
}  // namespace headrace
