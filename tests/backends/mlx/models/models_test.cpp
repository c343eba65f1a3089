// Whole language models by llama.cpp on the device that the library itself registers, against ggml's CPU.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "backends/mlx/models/generated_model.h"
#include "ggml-backend.h"
#include "llama.h"

namespace headrace::mlx {
namespace {

constexpr int kPrompt = 40, kSteps = 64;

struct ModelFree {
    void operator()(llama_model* m) const { llama_model_free(m); }
};
struct ContextFree {
    void operator()(llama_context* c) const { llama_free(c); }
};

ggml_backend_dev_t mlx_device() {
    static const bool loaded = ggml_backend_load(HEADRACE_MLX_LIBRARY) != nullptr;
    return loaded ? ggml_backend_dev_by_name("MLX0") : nullptr;
}

struct Options {
    bool on_mlx = true;
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
        ggml_backend_dev_t devices[2] = {options.on_mlx ? mlx_device() : nullptr, nullptr};
        model.devices = devices;
        model.n_gpu_layers = options.on_mlx ? options.layers : 0;
        // llama.cpp leaves the embeddings to the CPU unless told otherwise.
        const llama_model_tensor_buft_override everything[2] = {
            {"token_embd|position_embd|token_types",
             options.on_mlx ? ggml_backend_dev_buffer_type(mlx_device()) : nullptr},
            {nullptr, nullptr}};
        if (options.on_mlx && options.layers > 50) model.tensor_buft_overrides = everything;
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
    std::unique_ptr<llama_context, ContextFree> context_;
};

std::vector<llama_token> greedy(const std::vector<std::vector<float>>& logits) {
    std::vector<llama_token> tokens;
    for (const auto& l : logits)
        tokens.push_back(static_cast<llama_token>(std::max_element(l.begin(), l.end()) - l.begin()));
    return tokens;
}

double largest_difference(const std::vector<std::vector<float>>& a,
                          const std::vector<std::vector<float>>& b) {
    if (a.size() != b.size() || a.empty()) return INFINITY;
    double largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        for (std::size_t k = 0; k < a[i].size(); ++k)
            largest = std::max(largest, std::fabs(static_cast<double>(a[i][k]) - b[i][k]));
    return largest;
}

/// Logits of these models are of the order of 1 to 4.
constexpr double kTolerance = 2e-3;

void expect_same(const GeneratedModel& on_mlx, const GeneratedModel& on_cpu, const Options& options) {
    Options cpu = options;
    cpu.on_mlx = false;
    cpu.stop_after_each_node = false;
    cpu.deny = nullptr;
    const auto expected = Session(on_cpu, cpu).run();
    const auto actual = Session(on_mlx, options).run(greedy(expected));
    EXPECT_LT(largest_difference(actual, expected), kTolerance);
    EXPECT_EQ(greedy(actual), greedy(expected));
}

class Model : public ::testing::Test {
protected:
    void SetUp() override { ASSERT_NE(mlx_device(), nullptr) << HEADRACE_MLX_LIBRARY << " was not loaded"; }
    void expect_same_llama(const Options& options) {
        const GeneratedModel model(Architecture::llama, GGML_TYPE_F32);
        expect_same(model, model, options);
    }
};

TEST_F(Model, OfLlamasKindAnswersAsOnTheCpu) { expect_same_llama({}); }
/// With flash attention ggml's CPU rounds the queries to f16 as the keys are.
TEST_F(Model, AnswersNearlyTheSameWithFlashAttention) {
    const GeneratedModel model(Architecture::llama, GGML_TYPE_F32);
    const auto expected = Session(model, {.on_mlx = false, .flash = LLAMA_FLASH_ATTN_TYPE_ENABLED}).run();
    const auto actual = Session(model, {.flash = LLAMA_FLASH_ATTN_TYPE_ENABLED}).run(greedy(expected));
    EXPECT_LT(largest_difference(actual, expected), 0.02);
    EXPECT_EQ(greedy(actual), greedy(expected));
}
TEST_F(Model, AnswersTheSameWithHalfOfItsLayersOnTheDevice) { expect_same_llama({.layers = 2}); }
TEST_F(Model, AnswersTheSameWhenACallbackSeesEveryNode) { expect_same_llama({.stop_after_each_node = true}); }
TEST_F(Model, AnswersTheSameFromAnotherThread) { expect_same_llama({.in_another_thread = true}); }
TEST_F(Model, AnswersTheSameAfterItsCacheWasShifted) { expect_same_llama({.shift = true}); }

class ForcedSplits : public Model, public ::testing::WithParamInterface<const char*> {};
TEST_P(ForcedSplits, DoNotChangeTheAnswer) {
    const GeneratedModel model(Architecture::llama, GGML_TYPE_F32);
    expect_same(model, model, {.deny = GetParam()});
    EXPECT_GT(Session(model, {.deny = GetParam()}).splits(), 5) << "nothing was split";
}
INSTANTIATE_TEST_SUITE_P(Ops, ForcedSplits,
                         ::testing::Values("ROPE", "RMS_NORM", "CONT", "SOFT_MAX", "ADD,GLU"),
                         [](const auto& info) {
                             std::string name = info.param;
                             std::replace(name.begin(), name.end(), ',', '_');
                             return name;
                         });

TEST_F(Model, WithExpertsAnswersAsOnTheCpu) {
    const GeneratedModel model(Architecture::qwen3moe, GGML_TYPE_F32);
    expect_same(model, model, {});
}

TEST_F(Model, OfBertsKindEmbedsAsOnTheCpu) {
    const GeneratedModel model(Architecture::bert, GGML_TYPE_F32);
    const std::vector<float> expected = Session(model, {.on_mlx = false}).embedding();
    ASSERT_EQ(expected.size(), 256u);
    EXPECT_LT(largest_difference({Session(model, {}).embedding()}, {expected}),
              5e-4);  // its GELU is a table of f16
}

TEST_F(Model, RunsOnTheDeviceInOnePiece) {
    for (const Architecture a : {Architecture::llama, Architecture::qwen3moe, Architecture::bert})
        for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_Q4_0}) {
            const GeneratedModel model(a, type);
            EXPECT_EQ(Session(model, {.cache = GGML_TYPE_F16}).splits(), 1) << static_cast<int>(a);
        }
}

class QuantisedModel : public Model, public ::testing::WithParamInterface<ggml_type> {};
TEST_P(QuantisedModel, AnswersAsTheSameWeightsInF32Do) {
    for (const Architecture a : {Architecture::llama, Architecture::qwen3moe}) {
        const GeneratedModel model(a, GetParam()), same_in_f32(a, GetParam(), true);
        expect_same(model, same_in_f32, {});
    }
}
INSTANTIATE_TEST_SUITE_P(Types, QuantisedModel,
                         ::testing::Values(GGML_TYPE_F16, GGML_TYPE_Q4_0, GGML_TYPE_Q5_1, GGML_TYPE_Q8_0,
                                           GGML_TYPE_Q4_K, GGML_TYPE_Q6_K, GGML_TYPE_MXFP4),
                         [](const auto& info) { return std::string(ggml_type_name(info.param)); });

class QuantisedCache : public Model, public ::testing::WithParamInterface<ggml_type> {};
/// ggml's CPU rounds queries, too, before it multiplies them with such keys: the bound is wider than what the
/// cache itself costs against f32.
TEST_P(QuantisedCache, AnswersNearlyAsOnTheCpu) {
    const GeneratedModel model(Architecture::llama, GGML_TYPE_F32);
    const Options options{.cache = GetParam(), .flash = LLAMA_FLASH_ATTN_TYPE_ENABLED};
    Options cpu = options;
    cpu.on_mlx = false;
    const auto expected = Session(model, cpu).run();
    const auto actual = Session(model, options).run(greedy(expected));
    EXPECT_LT(largest_difference(actual, expected), GetParam() == GGML_TYPE_F16 ? 0.02 : 0.5);
}
INSTANTIATE_TEST_SUITE_P(Types, QuantisedCache,
                         ::testing::Values(GGML_TYPE_F16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_Q5_1,
                                           GGML_TYPE_IQ4_NL),
                         [](const auto& info) { return std::string(ggml_type_name(info.param)); });

}  // namespace
}  // namespace headrace::mlx
