#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <ggml.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "checkout.h"
#include "kernels/tensor/order_free_attention.h"

namespace headrace::packed {
namespace {

using MakeInvariant = bool (*)(ggml_tensor*);

/// The library's, as llama.cpp's contexts get it; null where the CPU has not what it needs.
MakeInvariant make_invariant() {
    static ggml_backend_reg_t loaded = ggml_backend_load(packed_library().c_str());
    return loaded ? reinterpret_cast<MakeInvariant>(
                        ggml_backend_reg_get_proc_address(loaded, "headrace_make_invariant"))
                  : nullptr;
}

ggml_backend_buffer_type_t packed_weights() {
    ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    const auto list = reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(ggml_backend_reg_get_proc_address(
        ggml_backend_dev_backend_reg(cpu), "ggml_backend_dev_get_extra_bufts"));
    return list(cpu)[0];
}

std::vector<float> random_floats(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& v : values) v = normal(random);
    return values;
}

constexpr std::int64_t kDepth = 512, kColumns = 70;

/// Weights of one type in one kind of memory, times any number of rows.
class Weights {
public:
    Weights(ggml_type type, ggml_backend_buffer_type_t memory) {
        context_ = ggml_init({.mem_size = 1 << 20, .mem_buffer = nullptr, .no_alloc = true});
        weights_ = ggml_new_tensor_2d(context_, type, kDepth, kColumns);
        buffer_ = ggml_backend_buft_alloc_buffer(memory, ggml_backend_buft_get_alloc_size(memory, weights_));
        ggml_backend_buffer_set_usage(buffer_, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
        ggml_backend_tensor_alloc(buffer_, weights_, ggml_backend_buffer_get_base(buffer_));
        const std::vector<float> values = random_floats(kDepth * kColumns, 5);
        std::vector<char> bytes(ggml_nbytes(weights_));
        ggml_quantize_chunk(type, values.data(), bytes.data(), 0, kColumns, kDepth, nullptr);
        ggml_backend_tensor_set(weights_, bytes.data(), 0, bytes.size());
    }
    ~Weights() {
        ggml_backend_buffer_free(buffer_);
        ggml_free(context_);
    }
    /// The product's rows; empty where it is not covered.
    std::vector<float> times(const std::vector<float>& rows, int threads) const {
        ggml_backend_t cpu = ggml_backend_cpu_init();
        ggml_backend_cpu_set_n_threads(cpu, threads);
        ggml_context* context = ggml_init({.mem_size = 1 << 20, .mem_buffer = nullptr, .no_alloc = true});
        ggml_tensor* input = ggml_new_tensor_2d(context, GGML_TYPE_F32, kDepth,
                                                static_cast<std::int64_t>(rows.size()) / kDepth);
        ggml_tensor* output = ggml_mul_mat(context, weights_, input);
        ggml_cgraph* graph = ggml_new_graph(context);
        ggml_build_forward_expand(graph, output);
        ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(context, cpu);
        ggml_backend_tensor_set(input, rows.data(), 0, ggml_nbytes(input));
        std::vector<float> result;
        if (make_invariant()(output)) {
            EXPECT_EQ(ggml_backend_graph_compute(cpu, graph), GGML_STATUS_SUCCESS);
            result.resize(static_cast<std::size_t>(ggml_nelements(output)));
            ggml_backend_tensor_get(output, result.data(), 0, ggml_nbytes(output));
        }
        ggml_backend_buffer_free(buffer);
        ggml_free(context);
        ggml_backend_free(cpu);
        return result;
    }

private:
    ggml_context* context_;
    ggml_tensor* weights_;
    ggml_backend_buffer_t buffer_;
};

class Invariance : public ::testing::Test {
protected:
    void SetUp() override {
        if (!kernels::has_order_free_attention(64, 64)) GTEST_SKIP() << "this CPU has no AVX2";
        ASSERT_NE(make_invariant(), nullptr) << "the library was not loaded, or does not offer it";
    }
};

void expect_same_rows(ggml_type type, ggml_backend_buffer_type_t memory) {
    SCOPED_TRACE(ggml_type_name(type) + std::string(" in ") + ggml_backend_buft_name(memory));
    const Weights weights(type, memory);
    const std::vector<float> rows = random_floats(700 * kDepth, 6);
    const auto first_rows = [&](std::size_t count, int threads) {
        return weights.times({rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(count * kDepth)},
                             threads);
    };
    const std::vector<float> one = first_rows(1, 1);
    ASSERT_EQ(one.size(), static_cast<std::size_t>(kColumns));
    for (const std::size_t count : {1, 2, 3, 5, 8, 17, 64, 200, 700})
        for (const int threads : {1, 2, 3}) {
            std::vector<float> many = first_rows(count, threads);
            ASSERT_EQ(many.size(), count * kColumns);
            many.resize(kColumns);
            ASSERT_EQ(many, one) << count << " rows, " << threads << " threads";
        }
}

TEST_F(Invariance, RowsOfProductsWithPackedWeightsDoNotDependOnOthers) {
    for (const ggml_type type :
         {GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_Q4_1, GGML_TYPE_Q4_K, GGML_TYPE_F16, GGML_TYPE_BF16})
        expect_same_rows(type, packed_weights());
}

TEST_F(Invariance, RowsOfProductsWithPlainWeightsDoNotDependOnOthers) {
    for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0,
                                 GGML_TYPE_Q5_K, GGML_TYPE_Q6_K, GGML_TYPE_IQ4_NL})
        expect_same_rows(type, ggml_backend_cpu_buffer_type());
}

/// Attention over a cache of one type.
class Attention {
public:
    explicit Attention(ggml_type cache, float max_bias = 0) {
        context_ = ggml_init({.mem_size = 1 << 20, .mem_buffer = nullptr, .no_alloc = true});
        ggml_tensor* q = ggml_new_tensor_3d(context_, GGML_TYPE_F32, 64, kTokens, 4);
        ggml_tensor* k = ggml_new_tensor_3d(context_, cache, 64, kKeys, 2);
        ggml_tensor* v = ggml_new_tensor_3d(context_, cache, 64, kKeys, 2);
        ggml_tensor* mask = ggml_new_tensor_2d(context_, GGML_TYPE_F16, kKeys, kTokens);
        output_ = ggml_flash_attn_ext(context_, q, k, v, mask, 0.125f, max_bias, 0);
        graph_ = ggml_new_graph(context_);
        ggml_build_forward_expand(graph_, output_);
        buffer_ = ggml_backend_alloc_ctx_tensors_from_buft(context_, ggml_backend_cpu_buffer_type());
        unsigned seed = 1;
        for (ggml_tensor* tensor : {q, k, v}) {
            const std::vector<float> values =
                random_floats(static_cast<std::size_t>(ggml_nelements(tensor)), seed++);
            if (tensor->type == GGML_TYPE_F16)
                ggml_fp32_to_fp16_row(values.data(), static_cast<ggml_fp16_t*>(tensor->data),
                                      ggml_nelements(tensor));
            else if (tensor->type == GGML_TYPE_F32)
                ggml_backend_tensor_set(tensor, values.data(), 0, ggml_nbytes(tensor));
        }
        std::fill_n(static_cast<ggml_fp16_t*>(mask->data), ggml_nelements(mask), ggml_fp32_to_fp16(0));
    }
    ~Attention() {
        ggml_backend_buffer_free(buffer_);
        ggml_free(context_);
    }
    bool is_covered() { return make_invariant()(output_); }
    std::vector<float> run(int threads) {
        ggml_backend_t cpu = ggml_backend_cpu_init();
        ggml_backend_cpu_set_n_threads(cpu, threads);
        EXPECT_EQ(ggml_backend_graph_compute(cpu, graph_), GGML_STATUS_SUCCESS);
        ggml_backend_free(cpu);
        const auto* data = static_cast<const float*>(output_->data);
        return {data, data + ggml_nelements(output_)};
    }

private:
    static constexpr std::int64_t kTokens = 1, kKeys = 256;
    ggml_context* context_;
    ggml_tensor* output_;
    ggml_cgraph* graph_;
    ggml_backend_buffer_t buffer_;
};

TEST_F(Invariance, AttentionIsTheSameOnMoreThreadsThanItHasPieces) {
    Attention marked(GGML_TYPE_F16), usual(GGML_TYPE_F16);
    ASSERT_TRUE(marked.is_covered());
    const std::vector<float> one = marked.run(1);
    for (const int threads : {2, 3, 5, 24}) EXPECT_EQ(marked.run(threads), one) << threads << " threads";
    const std::vector<float> other = usual.run(1);
    for (std::size_t i = 0; i < one.size(); ++i) ASSERT_NEAR(one[i], other[i], 1e-5) << i;
    EXPECT_NE(usual.run(24), other) << "ggml's own kernel takes over, and adds up in another way";
}

TEST_F(Invariance, SaysWhatItDoesNotCover) {
    EXPECT_FALSE(Attention(GGML_TYPE_F32).is_covered());
    EXPECT_FALSE(Attention(GGML_TYPE_Q8_0).is_covered());
    EXPECT_FALSE(Attention(GGML_TYPE_F16, 8).is_covered()) << "ALiBi";
    ggml_context* context = ggml_init({.mem_size = 1 << 20, .mem_buffer = nullptr, .no_alloc = true});
    ggml_tensor* a = ggml_new_tensor_2d(context, GGML_TYPE_F32, 64, 8);
    ggml_tensor* covered[] = {ggml_add(context, a, a), ggml_rms_norm(context, a, 1e-6f),
                              ggml_silu(context, a)};
    ggml_tensor* others[] = {ggml_soft_max(context, a), ggml_mul_mat(context, a, a), ggml_sum(context, a)};
    ggml_backend_buffer_t buffer =
        ggml_backend_alloc_ctx_tensors_from_buft(context, ggml_backend_cpu_buffer_type());
    ggml_backend_buffer_set_usage(buffer, GGML_BACKEND_BUFFER_USAGE_COMPUTE);
    for (ggml_tensor* node : covered) EXPECT_TRUE(make_invariant()(node)) << ggml_op_name(node->op);
    for (ggml_tensor* node : others) EXPECT_FALSE(make_invariant()(node)) << ggml_op_name(node->op);
    ggml_backend_buffer_free(buffer);
    ggml_free(context);
}

}  // namespace
}  // namespace headrace::packed
