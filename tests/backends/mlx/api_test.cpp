#include <gmock/gmock.h>

#include <numeric>

#include "backends/mlx/ggml_graph.h"
#include "headrace/ggml-mlx.hpp"

namespace headrace::mlx {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

/// Tensors in ordinary memory of the program's.
class Api : public ::testing::Test {
protected:
    ggml_tensor* tensor(std::vector<std::int64_t> extents, std::vector<float> values = {}) {
        ggml_tensor* t =
            ggml_new_tensor(context_.get(), GGML_TYPE_F32, static_cast<int>(extents.size()), extents.data());
        for (std::size_t i = 0; i < values.size(); ++i) ggml_get_data_f32(t)[i] = values[i];
        return t;
    }
    static std::vector<float> values(const ggml_tensor* t) {
        const float* data = ggml_get_data_f32(t);
        return {data, data + ggml_nelements(t)};
    }
    /// ggml's own CPU backend.
    std::vector<float> reference(ggml_tensor* t) {
        ggml_cgraph* graph = ggml_new_graph(context_.get());
        ggml_build_forward_expand(graph, t);
        ggml_graph_compute_with_ctx(context_.get(), graph, 1);
        return values(t);
    }
    void expect_reference(ggml_tensor* dst, ggml_tensor* node) {
        EXPECT_THAT(values(dst), Pointwise(FloatNear(1e-5f), reference(node)));
    }

    ContextHandle context_{ggml_init({std::size_t{64} << 20, nullptr, false})};
    ggml_tensor* a_ = tensor({3, 2}, {1, 2, 3, 4, 5, 6});
    ggml_tensor* row_ = tensor({3}, {10, 20, 30});
    ggml_tensor* out_ = tensor({3, 2});
};

TEST_F(Api, IsAvailable) {
    ggml_mlx_init();
    EXPECT_TRUE(ggml_mlx_available());
    ggml_mlx_free();
    EXPECT_TRUE(ggml_mlx_available());
}

TEST_F(Api, MultipliesMatrices) {
    ggml_tensor* x = tensor({3, 2}, {1, 0, 0, 0, 1, 1});
    ggml_tensor* y = tensor({2, 2});
    EXPECT_TRUE(ggml_mlx_can_mul_mat(a_, x, y));
    ASSERT_EQ(ggml_mlx_mul_mat(a_, x, y), GGML_STATUS_SUCCESS);
    EXPECT_THAT(values(y), ElementsAre(1, 4, 5, 11));
}

TEST_F(Api, MultipliesWithQuantizedWeightsInOrdinaryMemory) {
    const std::vector<float> w = random_values(64 * 4);
    ggml_tensor* weights = ggml_new_tensor_2d(context_.get(), GGML_TYPE_Q8_0, 64, 4);
    const auto blocks = quantized(GGML_TYPE_Q8_0, w, 64);
    std::memcpy(weights->data, blocks.data(), blocks.size());
    ggml_tensor* x = tensor({64}, std::vector<float>(64, 1));
    ggml_tensor* y = tensor({4});
    ASSERT_EQ(ggml_mlx_mul_mat(weights, x, y), GGML_STATUS_SUCCESS);
    const std::vector<float> held = dequantized(GGML_TYPE_Q8_0, blocks, 64 * 4);
    for (int m = 0; m < 4; ++m)
        EXPECT_NEAR(values(y)[m], std::accumulate(held.begin() + 64 * m, held.begin() + 64 * (m + 1), 0.0),
                    1e-4);
}

TEST_F(Api, ComputesElementByElement) {
    ASSERT_EQ(ggml_mlx_add(a_, row_, out_), GGML_STATUS_SUCCESS);
    EXPECT_THAT(values(out_), ElementsAre(11, 22, 33, 14, 25, 36));
    ASSERT_EQ(ggml_mlx_sub(a_, row_, out_), GGML_STATUS_SUCCESS);
    EXPECT_THAT(values(out_), ElementsAre(-9, -18, -27, -6, -15, -24));
    ASSERT_EQ(ggml_mlx_mul(a_, row_, out_), GGML_STATUS_SUCCESS);
    EXPECT_THAT(values(out_), ElementsAre(10, 40, 90, 40, 100, 180));
    ASSERT_EQ(ggml_mlx_div(row_, row_, tensor({3})), GGML_STATUS_SUCCESS);
    ASSERT_EQ(ggml_mlx_div(a_, row_, out_), GGML_STATUS_SUCCESS);
    expect_reference(out_, ggml_div(context_.get(), a_, row_));
}

TEST_F(Api, ActivatesAndNormalizesAsGgmlDoes) {
    ASSERT_EQ(ggml_mlx_sub(a_, row_, out_), GGML_STATUS_SUCCESS);
    ggml_tensor* x = tensor({3, 2}, values(out_));
    ggml_context* c = context_.get();
    ASSERT_EQ(ggml_mlx_relu(x, out_), GGML_STATUS_SUCCESS);
    expect_reference(out_, ggml_relu(c, x));
    ASSERT_EQ(ggml_mlx_silu(x, out_), GGML_STATUS_SUCCESS);
    expect_reference(out_, ggml_silu(c, x));
    ASSERT_EQ(ggml_mlx_soft_max(x, out_), GGML_STATUS_SUCCESS);
    expect_reference(out_, ggml_soft_max(c, x));
    ASSERT_EQ(ggml_mlx_norm(x, out_, 1e-5f), GGML_STATUS_SUCCESS);
    expect_reference(out_, ggml_norm(c, x, 1e-5f));
    ASSERT_EQ(ggml_mlx_rms_norm(x, out_, 1e-5f), GGML_STATUS_SUCCESS);
    expect_reference(out_, ggml_rms_norm(c, x, 1e-5f));
    ASSERT_EQ(ggml_mlx_gelu(a_, out_), GGML_STATUS_SUCCESS);
    EXPECT_NEAR(values(out_)[0], 0.841192f, 1e-5f);  // ggml's own looks up a table of f16
}

TEST_F(Api, AttendsAsGgmlDoes) {
    ggml_context* c = context_.get();
    ggml_tensor* q = tensor({16, 3, 4}, random_values(16 * 3 * 4, 1));
    ggml_tensor* k = tensor({16, 5, 2}, random_values(16 * 5 * 2, 2));
    ggml_tensor* v = tensor({16, 5, 2}, random_values(16 * 5 * 2, 3));
    ggml_tensor* dst = tensor({16, 4, 3});
    ASSERT_EQ(ggml_mlx_flash_attn(q, k, v, nullptr, dst, 0.25f), GGML_STATUS_SUCCESS);
    ggml_tensor* scores = ggml_soft_max_ext(c, ggml_mul_mat(c, k, q), nullptr, 0.25f, 0);
    ggml_tensor* mixed = ggml_mul_mat(c, ggml_cont(c, ggml_transpose(c, v)), scores);
    expect_reference(dst, ggml_cont(c, ggml_permute(c, mixed, 0, 2, 1, 3)));
}

TEST_F(Api, ConvolvesAsGgmlDoes) {
    ggml_context* c = context_.get();
    ggml_tensor* kernel = tensor({3, 2, 4, 5}, random_values(3 * 2 * 4 * 5, 1));
    ggml_tensor* image = tensor({9, 8, 4, 2}, random_values(9 * 8 * 4 * 2, 2));
    ggml_tensor* reference_node = ggml_conv_2d_direct(c, kernel, image, 2, 1, 1, 0, 1, 2);
    ggml_tensor* dst = tensor({reference_node->ne[0], reference_node->ne[1], 5, 2});
    ASSERT_EQ(ggml_mlx_conv_2d(kernel, image, dst, 2, 1, 1, 0, 1, 2), GGML_STATUS_SUCCESS);
    expect_reference(dst, reference_node);

    ggml_tensor* taps = tensor({3, 4, 5}, random_values(3 * 4 * 5, 1));
    ggml_tensor* signal = tensor({9, 4, 1}, random_values(9 * 4, 2));
    ggml_tensor* filtered = tensor({5, 5, 1});
    ASSERT_EQ(ggml_mlx_conv_1d(taps, signal, filtered, 2, 1, 1), GGML_STATUS_SUCCESS);
    double first = 0;  // output 0 of filter 0 begins one before the signal
    for (int channel = 0; channel < 4; ++channel)
        for (int tap = 1; tap < 3; ++tap)
            first += values(taps)[3 * channel + tap] * values(signal)[9 * channel + tap - 1];
    EXPECT_NEAR(values(filtered)[0], first, 1e-5);
}

std::string logged;
void keep_log(ggml_log_level, const char* text, void*) { logged += text; }

TEST_F(Api, RefusesOperandsThatDoNotGoTogetherAndNamesThem) {
    ggml_log_set(keep_log, nullptr);
    logged.clear();
    ggml_tensor* longer = tensor({4, 2});
    EXPECT_FALSE(ggml_mlx_can_mul_mat(a_, longer, out_));
    EXPECT_EQ(ggml_mlx_mul_mat(a_, longer, out_), GGML_STATUS_FAILED);
    EXPECT_THAT(logged, HasSubstr("f32 [3 x 2 x 1 x 1] f32 [4 x 2 x 1 x 1]"));
    EXPECT_EQ(ggml_mlx_add(a_, longer, out_), GGML_STATUS_FAILED);
    EXPECT_EQ(ggml_mlx_relu(a_, longer), GGML_STATUS_FAILED);
    EXPECT_EQ(ggml_mlx_conv_2d(a_, longer, out_, 0, 1, 0, 0, 1, 1), GGML_STATUS_FAILED);
    ggml_tensor* unwritable = ggml_new_tensor_2d(context_.get(), GGML_TYPE_IQ2_XXS, 256, 1);
    EXPECT_EQ(ggml_mlx_relu(tensor({256}), unwritable), GGML_STATUS_FAILED);
    EXPECT_THAT(logged, HasSubstr("iq2_xxs [256 x 1 x 1 x 1], a type that nothing is converted to"));
    EXPECT_FALSE(ggml_mlx_set_device(7));
    EXPECT_EQ(ggml_mlx_relu(ggml_new_tensor_2d(context_.get(), GGML_TYPE_I32, 3, 2), out_),
              GGML_STATUS_FAILED);
    ggml_log_set(nullptr, nullptr);
    EXPECT_EQ(ggml_mlx_relu(a_, out_), GGML_STATUS_SUCCESS);
}

TEST_F(Api, RefusesTensorsThatAreMissingOrHaveNoMemoryAndNamesTheOperand) {
    ggml_log_set(keep_log, nullptr);
    logged.clear();
    const ContextHandle without_memory(ggml_init({1 << 16, nullptr, true}));
    ggml_tensor* empty = ggml_new_tensor_2d(without_memory.get(), GGML_TYPE_F32, 3, 2);
    EXPECT_EQ(ggml_mlx_add(a_, nullptr, out_), GGML_STATUS_FAILED);
    EXPECT_THAT(logged, HasSubstr("operand 2 is NULL"));
    EXPECT_EQ(ggml_mlx_relu(empty, out_), GGML_STATUS_FAILED);
    EXPECT_THAT(logged, HasSubstr("operand 1, f32 [3 x 2 x 1 x 1], has no memory"));
    EXPECT_EQ(ggml_mlx_relu(a_, empty), GGML_STATUS_FAILED);
    EXPECT_EQ(ggml_mlx_relu(a_, nullptr), GGML_STATUS_FAILED);
    EXPECT_EQ(ggml_mlx_mul_mat(nullptr, a_, out_), GGML_STATUS_FAILED);
    EXPECT_EQ(ggml_mlx_flash_attn(a_, a_, nullptr, nullptr, out_, 1), GGML_STATUS_FAILED);
    EXPECT_EQ(ggml_mlx_conv_1d(a_, nullptr, out_, 1, 0, 1), GGML_STATUS_FAILED);
    EXPECT_EQ(ggml_mlx_conv_2d(a_, a_, nullptr, 1, 1, 0, 0, 1, 1), GGML_STATUS_FAILED);
    EXPECT_FALSE(ggml_mlx_can_mul_mat(nullptr, a_, out_));
    EXPECT_FALSE(ggml_mlx_can_mul_mat(a_, a_, nullptr));
    ggml_log_set(nullptr, nullptr);
    EXPECT_THROW(ggml_mlx::add(a_, static_cast<ggml_tensor*>(nullptr)), std::invalid_argument);
    EXPECT_THROW(ggml_mlx::relu(empty), std::invalid_argument);
    EXPECT_THROW(ggml_mlx::store(ggml_mlx::relu(a_), nullptr), std::invalid_argument);
    EXPECT_THROW(ggml_mlx::store(ggml_mlx::relu(a_), empty), std::invalid_argument);
}

TEST_F(Api, ChainsExpressionsOfTensorsAndArraysAndComputesThemOnce) {
    ggml_tensor* x = tensor({3, 2}, {1, 0, 0, 0, 1, 1});
    const array bias({100.0f, 200.0f}, {2});
    const array product = ggml_mlx::mul_mat(a_, x);
    const array biased = ggml_mlx::add(product, bias);
    const array result = ggml_mlx::relu(biased);
    for (const array* step : {&product, &biased, &result})
        EXPECT_EQ(step->status(), array::Status::unscheduled);
    ggml_tensor* dst = tensor({2, 2});
    ggml_mlx::store(result, dst);
    EXPECT_THAT(values(dst), ElementsAre(101, 204, 105, 211));
    // One evaluation computed them all.
    for (const array* step : {&product, &biased, &result})
        EXPECT_NE(step->status(), array::Status::unscheduled);
}

TEST_F(Api, TakesEveryMixOfTensorsAndArrays) {
    const array m = mx::reshape(array({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}), {2, 3});
    const array r({10.0f, 20.0f, 30.0f});
    const auto sum = [&](const ggml_mlx::Operand& a, const ggml_mlx::Operand& b) {
        ggml_mlx::store(ggml_mlx::add(a, b), out_);
        return values(out_);
    };
    const auto expected = ElementsAre(11, 22, 33, 14, 25, 36);
    EXPECT_THAT(sum(a_, row_), expected);
    EXPECT_THAT(sum(a_, r), expected);
    EXPECT_THAT(sum(m, row_), expected);
    EXPECT_THAT(sum(m, r), expected);
}

TEST_F(Api, StoresABatchOfResultsAtOnce) {
    const array doubled = ggml_mlx::add(a_, a_);
    ggml_tensor *first = tensor({3, 2}), *second = tensor({3, 2});
    ggml_mlx::store({{ggml_mlx::add(doubled, row_), first}, {ggml_mlx::mul(doubled, row_), second}});
    EXPECT_THAT(values(first), ElementsAre(12, 24, 36, 18, 30, 42));
    EXPECT_THAT(values(second), ElementsAre(20, 80, 180, 80, 200, 360));
    EXPECT_THROW(ggml_mlx::store(doubled, tensor({7})), std::invalid_argument);
}

TEST_F(Api, GivesArraysTheAxesOfTheirOperands) {
    const array x = mx::zeros({2, 4, 3}), w = mx::zeros({5, 3}), kernel = mx::zeros({6, 4, 1, 1});
    EXPECT_EQ(ggml_mlx::mul_mat(w, x).shape(), (Shape{2, 4, 5}));
    EXPECT_EQ(ggml_mlx::soft_max(w).shape(), (Shape{5, 3}));
    EXPECT_EQ(ggml_mlx::conv_2d(kernel, mx::zeros({1, 4, 8, 8}), 1, 1, 0, 0, 1, 1).shape(),
              (Shape{1, 6, 8, 8}));
    EXPECT_EQ(ggml_mlx::conv_1d(mx::zeros({6, 4, 3}), mx::zeros({1, 4, 8}), 1, 1, 1).shape(),
              (Shape{1, 6, 8}));
    EXPECT_EQ(
        ggml_mlx::flash_attn(mx::zeros({4, 3, 8}), mx::zeros({2, 5, 8}), mx::zeros({2, 5, 8}), 1).shape(),
        (Shape{3, 4, 8}));
    EXPECT_THROW(ggml_mlx::mul_mat(w, mx::zeros({2, 4})), std::invalid_argument);
}

}  // namespace
}  // namespace headrace::mlx
