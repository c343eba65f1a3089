#include "llm/model/context_params.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include <ggml.h>

#include "base/cpu_count.h"

namespace headrace::llm {
namespace {

constexpr std::uint32_t kMostByDefault = 8192;
constexpr std::uint64_t kThreadsFromBytes = 32u << 20;

constexpr ggml_type kGgmlCacheTypes[] = {GGML_TYPE_F32,    GGML_TYPE_F16,  GGML_TYPE_BF16,
                                         GGML_TYPE_Q8_0,   GGML_TYPE_Q4_0, GGML_TYPE_Q4_1,
                                         GGML_TYPE_IQ4_NL, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1};

Result<ggml_type> cache_type(const char* parameter, const std::string& name) {
    std::string names;
    for (ggml_type type : kGgmlCacheTypes) {
        if (name == ggml_type_name(type)) return type;
        names += fmt::format("{}{}", names.empty() ? "" : ", ", ggml_type_name(type));
    }
    return invalid("{}: '{}' is none of {}", parameter, name, names);
}

/// A block of a quantised cache must not reach over a head's end.
Status check_heads(const Model& model, const char* parameter, ggml_type type) {
    const int heads = std::max(1, llama_model_n_head(model.get()));
    const std::int64_t size = llama_model_n_embd(model.get()) / heads;
    if (size % ggml_blck_size(type) == 0) return success();
    return invalid("{}: {} has blocks of {}, and the model's heads have {} values. Use f16", parameter,
                   ggml_type_name(type), ggml_blck_size(type), size);
}

llama_rope_scaling_type rope_scaling(const std::string& name) {
    if (name == "none") return LLAMA_ROPE_SCALING_TYPE_NONE;
    if (name == "linear") return LLAMA_ROPE_SCALING_TYPE_LINEAR;
    if (name == "yarn") return LLAMA_ROPE_SCALING_TYPE_YARN;
    if (name == "longrope") return LLAMA_ROPE_SCALING_TYPE_LONGROPE;
    return LLAMA_ROPE_SCALING_TYPE_UNSPECIFIED;
}

void set_rope(const ContextSettings& settings, llama_context_params& params) {
    params.rope_scaling_type = rope_scaling(settings.rope_scaling);
    params.rope_freq_base = settings.rope_freq_base;
    params.rope_freq_scale = settings.rope_freq_scale;
    params.yarn_ext_factor = settings.yarn_ext_factor;
    params.yarn_attn_factor = settings.yarn_attn_factor;
    params.yarn_beta_fast = settings.yarn_beta_fast;
    params.yarn_beta_slow = settings.yarn_beta_slow;
    params.yarn_orig_ctx = static_cast<std::uint32_t>(settings.yarn_orig_ctx);
}

struct Turn {
    std::mutex mutex;
    std::condition_variable changed;
    std::uint64_t next = 0, serving = 0;
};
Turn& turn() {
    static Turn turn;
    return turn;
}

enum llama_pooling_type pooling_of(const std::string& name) {
    if (name == "none") return LLAMA_POOLING_TYPE_NONE;
    if (name == "mean") return LLAMA_POOLING_TYPE_MEAN;
    if (name == "cls") return LLAMA_POOLING_TYPE_CLS;
    if (name == "last") return LLAMA_POOLING_TYPE_LAST;
    if (name == "rank") return LLAMA_POOLING_TYPE_RANK;
    return LLAMA_POOLING_TYPE_UNSPECIFIED;
}

}  // namespace

int most_threads(const Model& model) {
    // More threads than cores wait for each other at every barrier: a step takes a hundred times as long
    // then. So they do in a model that small.
    return llama_model_size(model.get()) < kThreadsFromBytes ? 1 : usable_cpus();
}

Result<llama_context_params> sized_context_params(const ContextMemory& settings, std::uint32_t trained,
                                                  bool is_divisible) {
    llama_context_params params = llama_context_default_params();
    params.n_ctx = settings.n_ctx == kTrainedContext ? trained
                   : settings.n_ctx == kUsualContext ? std::min(trained, kMostByDefault)
                                                     : static_cast<std::uint32_t>(settings.n_ctx);
    params.n_ubatch = static_cast<std::uint32_t>(std::min(settings.n_ubatch, settings.n_batch));
    params.n_seq_max = static_cast<std::uint32_t>(std::clamp<std::size_t>(
        static_cast<std::size_t>(settings.max_sequences), static_cast<std::size_t>(settings.n_parallel),
        llama_max_parallel_sequences()));
    if (!is_divisible) params.n_seq_max = static_cast<std::uint32_t>(settings.n_parallel);
    // llama.cpp aborts where a batch, or a context, cannot hold a token of every sequence. It rounds contexts
    // up to 256 tokens.
    params.n_ctx = std::max(params.n_ctx, params.n_seq_max);
    params.n_batch = std::max(static_cast<std::uint32_t>(settings.n_batch), params.n_seq_max);
    params.kv_unified = true;
    HR_ASSIGN(params.type_k, cache_type("context.type_k", settings.type_k));
    HR_ASSIGN(params.type_v, cache_type("context.type_v", settings.type_v));
    params.flash_attn_type = settings.flash_attn == "on"    ? LLAMA_FLASH_ATTN_TYPE_ENABLED
                             : settings.flash_attn == "off" ? LLAMA_FLASH_ATTN_TYPE_DISABLED
                                                            : LLAMA_FLASH_ATTN_TYPE_AUTO;
    if (ggml_is_quantized(params.type_v)) {
        if (settings.flash_attn == "off")
            return invalid("context.type_v {} needs flash attention: leave context.flash_attn at auto",
                           settings.type_v);
        params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
    }
    params.swa_full = settings.swa_full;
    params.offload_kqv = settings.offload_kqv;
    return params;
}

Result<llama_context_params> context_params(const Model& model, const ContextSettings& settings) {
    const auto trained = static_cast<std::uint32_t>(std::max(1, llama_model_n_ctx_train(model.get())));
    HR_ASSIGN(llama_context_params params,
              sized_context_params(settings, trained, model.memory_is_divisible()));
    HR_TRY(check_heads(model, "context.type_k", params.type_k));
    HR_TRY(check_heads(model, "context.type_v", params.type_v));
    const int most = most_threads(model);
    params.n_threads = settings.n_threads > 0 ? std::min(settings.n_threads, most) : most;
    params.n_threads_batch =
        settings.n_threads_batch > 0 ? std::min(settings.n_threads_batch, most) : params.n_threads;
    if (settings.batch_invariant) params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
    set_rope(settings, params);
    params.op_offload = settings.op_offload;
    params.no_perf = true;
    return params;
}

ComputeTurn::ComputeTurn(const Model& model) {
    std::vector<std::shared_ptr<remote::Host>> hosts = model.hosts();
    std::sort(hosts.begin(),
              hosts.end());  // two models that share some never wait for each other in a circle
    for (const auto& host : hosts) hosts_.emplace_back(host->turn());
    if (!hosts_.empty()) return;
    std::unique_lock lock(turn().mutex);
    const std::uint64_t ticket = turn().next++;
    turn().changed.wait(lock, [&] { return turn().serving == ticket; });
}

ComputeTurn::~ComputeTurn() {
    if (!hosts_.empty()) return;
    {
        const std::lock_guard lock(turn().mutex);
        ++turn().serving;
    }
    turn().changed.notify_all();
}

std::uint32_t size_for_embeddings(const ContextMemory& settings, std::uint32_t trained,
                                  llama_context_params& params) {
    const std::uint32_t longest = settings.n_ctx > 0 ? std::min(trained, params.n_ctx) : trained;
    params.embeddings = true;
    params.pooling_type = pooling_of(settings.pooling);
    if (settings.attention == "causal") params.attention_type = LLAMA_ATTENTION_TYPE_CAUSAL;
    if (settings.attention == "non-causal") params.attention_type = LLAMA_ATTENTION_TYPE_NON_CAUSAL;
    params.n_seq_max = kMostTexts;
    // A text must be in one micro-batch: attention that looks ahead cannot be cut.
    params.n_ctx = params.n_batch = params.n_ubatch = std::max(longest, 512u);
    return longest;
}

}  // namespace headrace::llm
