#include "llm/model/context_memory.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/machine_memory.h"

namespace headrace::llm {
namespace {

constexpr std::uint64_t kContextStep = 256;  // llama.cpp rounds contexts up to it

/// A whole number of the file's metadata, under the architecture's name; 0 when there is none.
std::int64_t number_of(const Model& model, const char* key) {
    char text[64];
    if (llama_model_meta_val_str(model.get(), "general.architecture", text, sizeof text) < 0) return 0;
    const std::string name = fmt::format("{}.{}", text, key);
    return llama_model_meta_val_str(model.get(), name.c_str(), text, sizeof text) < 0 ? 0 : std::atoll(text);
}

}  // namespace

std::uint64_t context_bytes(const Model& model, const llama_context_params& params) {
    const bool is_compressed = number_of(model, "attention.kv_lora_rank") > 0;
    const bool is_windowed = number_of(model, "attention.sliding_window") > 0 && !params.swa_full;
    const bool is_shared = number_of(model, "attention.shared_kv_layers") > 0;
    const bool is_elsewhere = model.layers_on_gpu() != 0 && params.offload_kqv;
    if (!model.memory_is_divisible() || is_compressed || is_windowed || is_shared || is_elsewhere) return 0;
    const std::int64_t heads = std::max(1, llama_model_n_head(model.get()));
    const std::int64_t usual = llama_model_n_embd(model.get()) / heads,
                       shared = llama_model_n_head_kv(model.get());
    const auto row = [&](ggml_type type, const char* key) {
        const std::int64_t given = number_of(model, key), values = shared * (given > 0 ? given : usual);
        return ggml_row_size(type, values);
    };
    const std::uint64_t token =
        row(params.type_k, "attention.key_length") + row(params.type_v, "attention.value_length");
    return token * static_cast<std::uint64_t>(llama_model_n_layer(model.get())) * params.n_ctx;
}

std::uint32_t most_context_tokens(const Model& model, const llama_context_params& params) {
    const std::uint64_t needed = context_bytes(model, params);
    // The rest is for what computes, and for weights that are mapped: they count as available.
    const std::uint64_t room = available_memory() / 2;
    if (needed <= room) return params.n_ctx;
    const auto tokens = static_cast<std::uint64_t>(static_cast<double>(params.n_ctx) *
                                                   static_cast<double>(room) / static_cast<double>(needed));
    return static_cast<std::uint32_t>(std::max<std::uint64_t>(tokens / kContextStep, 1) * kContextStep);
}

Status enough_memory_for_context(const Model& model, const llama_context_params& params) {
    const std::uint64_t needed = context_bytes(model, params), available = available_memory();
    if (needed <= available) return success();
    constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
    const double fit = static_cast<double>(available) / static_cast<double>(needed) * params.n_ctx;
    return failure(Code::out_of_memory,
                   "a context of {} tokens needs {:.2f} GiB, and {:.2f} GiB are available. Use an n_ctx "
                   "below {:.0f}, or "
                   "type_k and type_v q8_0",
                   params.n_ctx, static_cast<double>(needed) / kGib, static_cast<double>(available) / kGib,
                   fit);
}

}  // namespace headrace::llm
