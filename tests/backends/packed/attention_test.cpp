#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <ggml.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "backends/packed/attention.h"
#include "checkout.h"
#include "kernels/tensor/decode_attention.h"

namespace headrace::packed {
namespace {

struct Case {
    std::int64_t width, heads, kv_heads, keys, tokens;
    float max_bias = 0, softcap = 0;
    bool sinks = false;
};

/// One node of flash attention on ggml's CPU; keys and values as a cache holds them, of either type.
class Node {
public:
    Node(const Case& c, ggml_type cache) {
        context_ = ggml_init({.mem_size = 1 << 20, .mem_buffer = nullptr, .no_alloc = true});
        q_ = ggml_new_tensor_3d(context_, GGML_TYPE_F32, c.width, c.tokens, c.heads);
        k_ = ggml_new_tensor_3d(context_, cache, c.width, c.kv_heads, c.keys);
        v_ = ggml_new_tensor_3d(context_, cache, c.width, c.kv_heads, c.keys);
        mask_ = ggml_new_tensor_2d(context_, GGML_TYPE_F16, c.keys, c.tokens);
        const auto heads_first = [&](ggml_tensor* t) { return ggml_permute(context_, t, 0, 2, 1, 3); };
        output_ = ggml_flash_attn_ext(context_, q_, heads_first(k_), heads_first(v_), mask_,
                                      1 / std::sqrt(static_cast<float>(c.width)), c.max_bias, c.softcap);
        if (c.sinks) {
            sinks_ = ggml_new_tensor_1d(context_, GGML_TYPE_F32, c.heads);
            ggml_flash_attn_ext_add_sinks(output_, sinks_);
        }
        graph_ = ggml_new_graph(context_);
        ggml_build_forward_expand(graph_, output_);
        buffer_ = ggml_backend_alloc_ctx_tensors_from_buft(context_, ggml_backend_cpu_buffer_type());
        fill(c);
    }
    ~Node() {
        ggml_backend_buffer_free(buffer_);
        ggml_free(context_);
    }
    bool is_ours() const { return attention_of(output_) != nullptr; }
    std::vector<float> run(int threads) {
        ggml_backend_t cpu = ggml_backend_cpu_init();
        ggml_backend_cpu_set_n_threads(cpu, threads);
        EXPECT_EQ(ggml_backend_graph_compute(cpu, graph_), GGML_STATUS_SUCCESS);
        ggml_backend_free(cpu);
        const auto* data = static_cast<const float*>(output_->data);
        return {data, data + ggml_nelements(output_)};
    }

private:
    void fill(const Case& c) {
        std::mt19937 random(7);
        std::normal_distribution<float> normal;
        const auto set = [&](ggml_tensor* tensor) {
            for (std::int64_t i = 0; i < ggml_nelements(tensor); ++i) {
                const ggml_fp16_t half = ggml_fp32_to_fp16(normal(random));
                if (tensor->type == GGML_TYPE_F16)
                    static_cast<ggml_fp16_t*>(tensor->data)[i] = half;
                else
                    static_cast<float*>(tensor->data)[i] = ggml_fp16_to_fp32(half);
            }
        };
        for (ggml_tensor* tensor : {q_, k_, v_}) set(tensor);
        if (sinks_) set(sinks_);
        auto* mask = static_cast<ggml_fp16_t*>(mask_->data);
        for (std::int64_t t = 0; t < c.tokens; ++t)
            for (std::int64_t j = 0; j < c.keys; ++j) {
                const std::int64_t distance = c.keys - c.tokens + t - j;
                const float value = distance < 0 ? -std::numeric_limits<float>::infinity()
                                                 : -static_cast<float>(c.max_bias > 0 ? distance : 0);
                mask[t * c.keys + j] = ggml_fp32_to_fp16(value);
            }
    }

    ggml_context* context_;
    ggml_tensor *q_, *k_, *v_, *mask_, *sinks_ = nullptr, *output_;
    ggml_cgraph* graph_;
    ggml_backend_buffer_t buffer_;
};

class CachedAttention : public ::testing::Test {
protected:
    void SetUp() override {
        if (!kernels::has_cached_attention<std::uint16_t>(64, 64)) GTEST_SKIP() << "this CPU has no AVX2";
        static ggml_backend_reg_t loaded = ggml_backend_load(packed_library().c_str());
        ASSERT_NE(loaded, nullptr) << "the library was not loaded";
    }
    /// ggml's own kernel computes the same with the cache's values in f32.
    static void expect_as_ggml(const Case& c, bool ours) {
        Node half_floats(c, GGML_TYPE_F16), floats(c, GGML_TYPE_F32);
        EXPECT_EQ(half_floats.is_ours(), ours);
        ASSERT_FALSE(floats.is_ours());
        const std::vector<float> expected = floats.run(1);
        const std::int64_t pieces = (c.tokens * c.heads / c.kv_heads + 3) / 4 * c.kv_heads;
        for (const int threads : {1, 2, 24}) {
            const std::vector<float> o = half_floats.run(threads);
            // ggml's kernel for f16, which has more threads than pieces, adds up in f16.
            const double tolerance = ours && threads <= pieces ? 2e-5 : 1e-2;
            for (std::size_t i = 0; i < o.size(); ++i)
                ASSERT_NEAR(o[i], expected[i], tolerance) << i << ", " << threads << " threads";
        }
    }
};

TEST_F(CachedAttention, IsThatOfGgmlInF32) {
    for (const Case& c :
         {Case{128, 16, 8, 512, 1}, Case{64, 8, 8, 100, 7}, Case{96, 6, 2, 300, 33}, Case{256, 2, 1, 64, 2},
          Case{.width = 64,
          .heads = 4,
          .kv_heads = 2,
          .keys = 200,
          .tokens = 3,
          .softcap = 20,
          .sinks = true}})
        expect_as_ggml(c, true);
}

TEST_F(CachedAttention, LeavesToGgmlWhatItLacks) {
    expect_as_ggml({.width = 64, .heads = 4, .kv_heads = 4, .keys = 96, .tokens = 2, .max_bias = 8}, false);
    expect_as_ggml({.width = 44, .heads = 4, .kv_heads = 4, .keys = 96, .tokens = 2}, false);
}

}  // namespace
}  // namespace headrace::packed
