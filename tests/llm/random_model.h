#pragma once
#include <ggml.h>
#include <gguf.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "checkout.h"
#include "temporary_folder.h"

namespace headrace::llm {

/// A small model with random weights: of an architecture, "llama" or "qwen3", with matrices of one type. It
/// has the vocabulary of the chat model of this repository.
class RandomModel {
public:
    RandomModel(const std::string& architecture, ggml_type type, unsigned seed = 17)
        : architecture_(architecture), type_(type), random_(seed) {
        gguf_context* chat = gguf_init_from_file(checkout_path("models/tiny-chat-q8_0.gguf").c_str(),
                                                 {.no_alloc = true, .ctx = nullptr});
        file_ = gguf_init_empty();
        gguf_set_kv(file_, chat);
        vocabulary_ =
            static_cast<std::int64_t>(gguf_get_arr_n(chat, gguf_find_key(chat, "tokenizer.ggml.tokens")));
        gguf_free(chat);
        tensors_ = ggml_init({.mem_size = 64u << 20, .mem_buffer = nullptr, .no_alloc = false});
        add_shape();
        add_weights();
        EXPECT_TRUE(gguf_write_to_file(file_, path().c_str(), false));
        gguf_free(file_);
        ggml_free(tensors_);
    }

    std::string path() const { return folder_ / "model.gguf"; }

private:
    static constexpr int kWidth = 128, kHeads = 4, kKvHeads = 2, kLayers = 3, kForward = 256, kContext = 2048;

    bool is_qwen() const { return architecture_ == "qwen3"; }
    int head() const { return is_qwen() ? 64 : kWidth / kHeads; }

    void set(const std::string& key, int value) {
        gguf_set_val_u32(file_, (architecture_ + "." + key).c_str(), static_cast<std::uint32_t>(value));
    }
    void add_shape() {
        gguf_set_val_str(file_, "general.architecture", architecture_.c_str());
        gguf_set_val_str(file_, "general.name", ("random " + architecture_).c_str());
        set("context_length", kContext);
        set("embedding_length", kWidth);
        set("block_count", kLayers);
        set("feed_forward_length", kForward);
        set("attention.head_count", kHeads);
        set("attention.head_count_kv", kKvHeads);
        set("attention.key_length", head());
        set("attention.value_length", head());
        set("rope.dimension_count", head());
        gguf_set_val_f32(file_, (architecture_ + ".attention.layer_norm_rms_epsilon").c_str(), 1e-6f);
        gguf_set_val_f32(file_, (architecture_ + ".rope.freq_base").c_str(), 10000);
    }
    void add_weights() {
        add_matrix("token_embd", kWidth, vocabulary_, 0.2f);
        add_norm("output_norm", kWidth);
        for (int layer = 0; layer < kLayers; ++layer) {
            const std::string of = "blk." + std::to_string(layer) + ".";
            for (const char* norm : {"attn_norm", "ffn_norm"}) add_norm(of + norm, kWidth);
            if (is_qwen())
                for (const char* norm : {"attn_q_norm", "attn_k_norm"}) add_norm(of + norm, head());
            add_matrix(of + "attn_q", kWidth, kHeads * head(), 0.2f);
            add_matrix(of + "attn_k", kWidth, kKvHeads * head(), 0.2f);
            add_matrix(of + "attn_v", kWidth, kKvHeads * head(), 0.1f);
            add_matrix(of + "attn_output", kHeads * head(), kWidth, 0.2f);
            add_matrix(of + "ffn_gate", kWidth, kForward, 0.1f);
            add_matrix(of + "ffn_up", kWidth, kForward, 0.1f);
            add_matrix(of + "ffn_down", kForward, kWidth, 0.1f);
        }
    }
    std::vector<float> numbers(std::int64_t count, float mean, float deviation) {
        std::normal_distribution<float> normal(mean, deviation);
        std::vector<float> values(static_cast<std::size_t>(count));
        for (float& value : values) value = normal(random_);
        return values;
    }
    void add_matrix(const std::string& name, std::int64_t inner, std::int64_t rows, float deviation) {
        ggml_tensor* matrix = ggml_new_tensor_2d(tensors_, type_, inner, rows);
        ggml_quantize_chunk(type_, numbers(inner * rows, 0, deviation).data(), matrix->data, 0, rows, inner,
                            nullptr);
        add(matrix, name);
    }
    void add_norm(const std::string& name, std::int64_t size) {
        ggml_tensor* norm = ggml_new_tensor_1d(tensors_, GGML_TYPE_F32, size);
        const std::vector<float> values = numbers(size, 1, 0.1f);
        std::copy(values.begin(), values.end(), static_cast<float*>(norm->data));
        add(norm, name);
    }
    void add(ggml_tensor* tensor, const std::string& name) {
        ggml_set_name(tensor, (name + ".weight").c_str());
        gguf_add_tensor(file_, tensor);
    }

    const TemporaryFolder folder_;
    const std::string architecture_;
    const ggml_type type_;
    std::mt19937 random_;
    std::int64_t vocabulary_ = 0;
    gguf_context* file_ = nullptr;
    ggml_context* tensors_ = nullptr;
};

}  // namespace headrace::llm
