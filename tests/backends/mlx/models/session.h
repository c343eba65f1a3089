#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backends/mlx/models/generated_model.h"
#include "ggml-backend.h"
#include "llama.h"

namespace headrace::mlx {

constexpr int kPrompt = 40, kSteps = 64;

struct ModelFree {
    void operator()(llama_model* m) const { llama_model_free(m); }
};
struct LlamaContextFree {
    void operator()(llama_context* c) const { llama_free(c); }
};

/// The device of a backend library, or null. Libraries stay loaded.
inline ggml_backend_dev_t device_of(const char* library) {
    static std::map<std::string, ggml_backend_reg_t> loaded;
    const auto [it, is_new] = loaded.try_emplace(library);
    if (is_new) it->second = ggml_backend_load(library);
    return it->second ? ggml_backend_reg_dev_get(it->second, 0) : nullptr;
}

struct Options {
    bool on_mlx = true;
    const char* library = HEADRACE_MLX_LIBRARY;  ///< the backend's
    int layers = 99;
    ggml_type cache = GGML_TYPE_F32;
    llama_flash_attn_type flash = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    bool stop_after_each_node = false;
    bool in_another_thread = false;
    bool shift = false;  ///< forget a part of the prompt and move the rest
    const char* deny = nullptr;
};

/// A model opened with the options, and what it answers.
class Session {
public:
    Session(const GeneratedModel& file, const Options& options) : options_(options) {
        if (options.deny) setenv("GGML_MLX_DENY", options.deny, 1);
        llama_log_set(&Session::keep_log, this);
        llama_model_params model = llama_model_default_params();
        const ggml_backend_dev_t device = options.on_mlx ? device_of(options.library) : nullptr;
        if (options.on_mlx && !device)
            ADD_FAILURE() << "no device in " << options.library << ": this is the CPU";
        ggml_backend_dev_t devices[2] = {device, nullptr};
        model.devices = devices;
        model.n_gpu_layers = device ? options.layers : 0;
        // llama.cpp leaves the embeddings to the CPU unless told otherwise.
        const llama_model_tensor_buft_override everything[2] = {
            {"token_embd|position_embd|token_types", device ? ggml_backend_dev_buffer_type(device) : nullptr},
            {nullptr, nullptr}};
        if (device && options.layers > 50) model.tensor_buft_overrides = everything;
        model_.reset(llama_model_load_from_file(file.path().c_str(), model));
        llama_context_params context = llama_context_default_params();
        context.n_ctx = 256;
        context.n_batch = context.n_ubatch = 64;
        context.n_threads = context.n_threads_batch = 1;
        context.type_k = context.type_v = options.cache;
        context.flash_attn_type = options.flash;
        if (options.stop_after_each_node) context.cb_eval = [](ggml_tensor*, bool, void*) { return true; };
        if (model_) context_.reset(llama_init_from_model(model_.get(), context));
        if (!context_) ADD_FAILURE() << "the model was not opened: " << log_;
    }
    ~Session() {
        context_.reset();
        llama_log_set(nullptr, nullptr);
        unsetenv("GGML_MLX_DENY");
    }

    /// The logits of the prompt's last token and of 64 greedy steps. With `tokens` those are fed instead, so
    /// that two models can be compared beyond the first difference.
    std::vector<std::vector<float>> run(const std::vector<llama_token>& tokens = {}) {
        std::vector<std::vector<float>> logits;
        const auto work = [&] { logits = decode_all(tokens); };
        if (options_.in_another_thread)
            std::thread(work).join();
        else
            work();
        return logits;
    }

    std::vector<float> embedding() {
        std::vector<llama_token> prompt = make_prompt();
        llama_set_embeddings(context_.get(), true);
        EXPECT_EQ(llama_encode(context_.get(), llama_batch_get_one(prompt.data(), kPrompt)), 0);
        const float* values = llama_get_embeddings_seq(context_.get(), 0);
        return values ? std::vector<float>(values, values + llama_model_n_embd(model_.get()))
                      : std::vector<float>{};
    }

    /// Parts that llama.cpp's scheduler cuts the graph of one token into.
    int splits() const {
        const std::size_t at = log_.rfind(", splits = ");
        return at == std::string::npos ? -1 : std::atoi(log_.c_str() + at + 11);
    }

private:
    static void keep_log(ggml_log_level, const char* text, void* self) {
        static_cast<Session*>(self)->log_ += text;
    }
    int vocabulary() const { return llama_vocab_n_tokens(llama_model_get_vocab(model_.get())); }
    std::vector<llama_token> make_prompt() const {
        std::vector<llama_token> prompt(kPrompt);
        for (int i = 0; i < kPrompt; ++i) prompt[i] = (i * 97 + 13) % vocabulary();
        return prompt;
    }
    std::vector<float> logits() const {
        const float* values = llama_get_logits_ith(context_.get(), -1);
        return {values, values + vocabulary()};
    }

    std::vector<std::vector<float>> decode_all(const std::vector<llama_token>& tokens) {
        std::vector<std::vector<float>> all;
        if (!context_) return all;
        std::vector<llama_token> prompt = make_prompt();
        EXPECT_EQ(llama_decode(context_.get(), llama_batch_get_one(prompt.data(), kPrompt)), 0);
        all.push_back(logits());
        if (options_.shift) {
            llama_memory_t memory = llama_get_memory(context_.get());
            llama_memory_seq_rm(memory, 0, 4, 12);
            llama_memory_seq_add(memory, 0, 12, -1, -8);
        }
        for (int i = 0; i < kSteps; ++i) {
            const auto& last = all.back();
            llama_token token =
                tokens.empty()
                    ? static_cast<llama_token>(std::max_element(last.begin(), last.end()) - last.begin())
                    : tokens[i];
            EXPECT_EQ(llama_decode(context_.get(), llama_batch_get_one(&token, 1)), 0);
            all.push_back(logits());
        }
        return all;
    }

    Options options_;
    std::string log_;
    std::unique_ptr<llama_model, ModelFree> model_;
    std::unique_ptr<llama_context, LlamaContextFree> context_;
};

inline std::vector<llama_token> greedy(const std::vector<std::vector<float>>& logits) {
    std::vector<llama_token> tokens;
    for (const auto& l : logits)
        tokens.push_back(static_cast<llama_token>(std::max_element(l.begin(), l.end()) - l.begin()));
    return tokens;
}

inline double largest_difference(const std::vector<std::vector<float>>& a,
                                 const std::vector<std::vector<float>>& b) {
    if (a.size() != b.size() || a.empty()) return INFINITY;
    double largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        for (std::size_t k = 0; k < a[i].size(); ++k)
            largest = std::max(largest, std::fabs(static_cast<double>(a[i][k]) - b[i][k]));
    return largest;
}

}  // namespace headrace::mlx
