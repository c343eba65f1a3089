#include "backends/mlx/models/generated_model.h"

#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <vector>

#include "gguf.h"

namespace headrace::mlx {

const char* name_of(Architecture a) {
    switch (a) {
        case Architecture::llama: return "llama";
        case Architecture::qwen3moe: return "qwen3moe";
        case Architecture::gemma2: return "gemma2";
        case Architecture::gemma3: return "gemma3";
        case Architecture::mamba2: return "mamba2";
        case Architecture::bert: return "bert";
    }
    return "";
}

namespace {

constexpr std::uint32_t kLayers = 3, kWidth = 256, kHidden = 512, kHeads = 8, kKvHeads = 4, kVocabulary = 512,
                        kContext = 512, kExperts = 8, kExpertsUsed = 2, kExpertHidden = 256,
                        kWindow = 24;  // of tokens that gemma's local layers see
/// Sizes of mamba2: a state of kState values for each of a head's kInner / kSsmHeads.
constexpr std::uint32_t kInner = 512, kState = 32, kSsmHeads = 8, kGroups = 2, kFilter = 4;

class Writer {
public:
    Writer(Architecture architecture, ggml_type type, bool as_f32)
        : architecture_(architecture), type_(type), as_f32_(as_f32) {}
    ~Writer() {
        gguf_free(file_);
        ggml_free(context_);
    }

    void write(const std::string& path) {
        settings();
        if (architecture_ == Architecture::bert)
            bert();
        else if (architecture_ == Architecture::mamba2)
            mamba();
        else
            decoder();
        if (!gguf_write_to_file(file_, path.c_str(), false)) throw std::runtime_error("cannot write " + path);
    }

private:
    void settings() {
        const std::string name = name_of(architecture_);
        gguf_set_val_str(file_, "general.architecture", name.c_str());
        gguf_set_val_str(file_, "tokenizer.ggml.model", "no_vocab");
        const auto number = [&](const char* key, std::uint32_t value) {
            gguf_set_val_u32(file_, (name + "." + key).c_str(), value);
        };
        number("vocab_size", kVocabulary);
        number("context_length", kContext);
        number("embedding_length", kWidth);
        number("block_count", kLayers);
        number("feed_forward_length", kHidden);
        number("attention.head_count", kHeads);
        if (architecture_ == Architecture::bert) {
            gguf_set_val_f32(file_, "bert.attention.layer_norm_epsilon", 1e-5f);
            gguf_set_val_bool(file_, "bert.attention.causal", false);
            gguf_set_val_u32(file_, "bert.pooling_type", 1);  // mean
            gguf_set_val_u32(file_, "tokenizer.ggml.token_type_count", 2);
            return;
        }
        number("attention.head_count_kv", kKvHeads);
        number("rope.dimension_count", kWidth / kHeads);
        gguf_set_val_f32(file_, (name + ".attention.layer_norm_rms_epsilon").c_str(), 1e-5f);
        number("attention.key_length", kWidth / kHeads);
        number("attention.value_length", kWidth / kHeads);
        if (architecture_ == Architecture::qwen3moe) {
            number("expert_count", kExperts);
            number("expert_used_count", kExpertsUsed);
            number("expert_feed_forward_length", kExpertHidden);
        }
        if (architecture_ == Architecture::mamba2) {
            number("ssm.conv_kernel", kFilter);
            number("ssm.inner_size", kInner);
            number("ssm.state_size", kState);
            number("ssm.time_step_rank", kSsmHeads);
            number("ssm.group_count", kGroups);
        }
        if (!is_gemma()) return;
        number("attention.sliding_window", kWindow);
        number("attention.sliding_window_pattern", 2);
        gguf_set_val_f32(file_, (name + ".rope.freq_base_swa").c_str(), 1e4f);
        gguf_set_val_f32(file_, (name + ".rope.freq_base").c_str(), 1e6f);
        if (architecture_ != Architecture::gemma2) return;
        gguf_set_val_f32(file_, "gemma2.attn_logit_softcapping", 5.0f);
        gguf_set_val_f32(file_, "gemma2.final_logit_softcapping", 3.0f);
    }

    bool is_gemma() const {
        return architecture_ == Architecture::gemma2 || architecture_ == Architecture::gemma3;
    }

    void decoder() {
        matrix("token_embd.weight", kWidth, kVocabulary);
        if (!is_gemma()) matrix("output.weight", kWidth, kVocabulary);
        vector("output_norm.weight", kWidth, 1);
        const std::uint32_t kv = kWidth / kHeads * kKvHeads;
        for (std::uint32_t i = 0; i < kLayers; ++i) {
            const std::string layer = "blk." + std::to_string(i) + ".";
            vector(layer + "attn_norm.weight", kWidth, 1);
            vector(layer + "ffn_norm.weight", kWidth, 1);
            matrix(layer + "attn_q.weight", kWidth, kWidth);
            matrix(layer + "attn_k.weight", kWidth, kv);
            matrix(layer + "attn_v.weight", kWidth, kv);
            matrix(layer + "attn_output.weight", kWidth, kWidth);
            if (is_gemma()) {
                vector(layer + "post_attention_norm.weight", kWidth, 1);
                vector(layer + "post_ffw_norm.weight", kWidth, 1);
            }
            if (architecture_ == Architecture::qwen3moe || architecture_ == Architecture::gemma3) {
                vector(layer + "attn_q_norm.weight", kWidth / kHeads, 1);
                vector(layer + "attn_k_norm.weight", kWidth / kHeads, 1);
            }
            if (architecture_ != Architecture::qwen3moe) {
                matrix(layer + "ffn_gate.weight", kWidth, kHidden);
                matrix(layer + "ffn_up.weight", kWidth, kHidden);
                matrix(layer + "ffn_down.weight", kHidden, kWidth);
                continue;
            }
            add(layer + "ffn_gate_inp.weight", GGML_TYPE_F32, {kWidth, kExperts});
            matrix(layer + "ffn_gate_exps.weight", kWidth, kExpertHidden, kExperts);
            matrix(layer + "ffn_up_exps.weight", kWidth, kExpertHidden, kExperts);
            matrix(layer + "ffn_down_exps.weight", kExpertHidden, kWidth, kExperts);
        }
    }

    void mamba() {
        matrix("token_embd.weight", kWidth, kVocabulary);
        vector("output_norm.weight", kWidth, 1);
        const std::uint32_t filtered = kInner + 2 * kGroups * kState;
        for (std::uint32_t i = 0; i < kLayers; ++i) {
            const std::string layer = "blk." + std::to_string(i) + ".";
            vector(layer + "attn_norm.weight", kWidth, 1);
            matrix(layer + "ssm_in.weight", kWidth, kInner + filtered + kSsmHeads);
            add(layer + "ssm_conv1d.weight", GGML_TYPE_F32, {kFilter, filtered});
            vector(layer + "ssm_conv1d.bias", filtered, 0);
            vector(layer + "ssm_dt.bias", kSsmHeads, 0);
            vector(layer + "ssm_a", kSsmHeads, -1, {1, kSsmHeads});
            vector(layer + "ssm_d", kSsmHeads, 1, {1, kSsmHeads});
            vector(layer + "ssm_norm.weight", kInner, 1, {kInner / kGroups, kGroups});
            matrix(layer + "ssm_out.weight", kInner, kWidth);
        }
    }

    void bert() {
        matrix("token_embd.weight", kWidth, kVocabulary);
        add("position_embd.weight", GGML_TYPE_F32, {kWidth, kContext});
        add("token_types.weight", GGML_TYPE_F32, {kWidth, 2});
        norm("token_embd_norm");
        for (std::uint32_t i = 0; i < kLayers; ++i) {
            const std::string layer = "blk." + std::to_string(i) + ".";
            for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output"}) {
                matrix(layer + name + ".weight", kWidth, kWidth);
                vector(layer + name + ".bias", kWidth, 0);
            }
            norm(layer + "attn_output_norm");
            matrix(layer + "ffn_up.weight", kWidth, kHidden);
            vector(layer + "ffn_up.bias", kHidden, 0);
            matrix(layer + "ffn_down.weight", kHidden, kWidth);
            vector(layer + "ffn_down.bias", kWidth, 0);
            norm(layer + "layer_output_norm");
        }
    }

    void norm(const std::string& name) {
        vector(name + ".weight", kWidth, 1);
        vector(name + ".bias", kWidth, 0);
    }

    void matrix(const std::string& name, std::int64_t columns, std::int64_t rows, std::int64_t count = 1) {
        add(name, type_, {columns, rows, count});
    }

    void vector(const std::string& name, std::int64_t size, float around,
                std::vector<std::int64_t> extents = {}) {
        std::vector<float> values(static_cast<std::size_t>(size));
        for (float& v : values) v = around + 0.1f * normal_(engine_);
        if (extents.empty()) extents = {size};
        put(name, GGML_TYPE_F32, extents, values.data());
    }

    void add(const std::string& name, ggml_type type, std::vector<std::int64_t> extents) {
        const std::int64_t columns = extents[0];
        std::int64_t rows = 1;
        for (std::size_t d = 1; d < extents.size(); ++d) rows *= extents[d];
        std::vector<float> values(static_cast<std::size_t>(columns * rows));
        for (float& v : values) v = normal_(engine_) / std::sqrt(static_cast<float>(columns));
        if (type == GGML_TYPE_F32) return put(name, type, extents, values.data());
        std::vector<std::uint8_t> blocks(ggml_row_size(type, columns) * static_cast<std::size_t>(rows));
        ggml_quantize_chunk(type, values.data(), blocks.data(), 0, rows, columns, nullptr);
        if (!as_f32_) return put(name, type, extents, blocks.data());
        ggml_get_type_traits(type)->to_float(blocks.data(), values.data(), columns * rows);
        put(name, GGML_TYPE_F32, extents, values.data());
    }

    void put(const std::string& name, ggml_type type, const std::vector<std::int64_t>& extents,
             const void* data) {
        ggml_tensor* t = ggml_new_tensor(context_, type, static_cast<int>(extents.size()), extents.data());
        ggml_set_name(t, name.c_str());
        std::memcpy(t->data, data, ggml_nbytes(t));
        gguf_add_tensor(file_, t);
    }

    Architecture architecture_;
    ggml_type type_;
    bool as_f32_;
    gguf_context* file_ = gguf_init_empty();
    ggml_context* context_ = ggml_init({std::size_t{64} << 20, nullptr, false});
    std::mt19937 engine_{7};
    std::normal_distribution<float> normal_;
};

}  // namespace

GeneratedModel::GeneratedModel(Architecture architecture, ggml_type type, bool as_f32) {
    static int made = 0;
    path_ = (std::filesystem::temp_directory_path() /
             ("headrace_mlx_" + std::to_string(getpid()) + "_" + std::to_string(made++) + ".gguf"))
                .string();
    Writer(architecture, type, as_f32).write(path_);
}

GeneratedModel::~GeneratedModel() { std::filesystem::remove(path_); }

}  // namespace headrace::mlx
