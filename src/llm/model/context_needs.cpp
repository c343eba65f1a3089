#include "llm/model/context_needs.h"

#include <common/fit.h>

#include <algorithm>
#include <exception>
#include <vector>

#include "base/log.h"
#include "llm/log/llama_log.h"
#include "llm/model/context_params.h"

namespace headrace::llm {

namespace {

/// Tokens of the largest context that is laid out: its table of cells is allocated.
constexpr std::uint32_t kMostMeasured = 32768;

/// Bytes for a token's place in the context or in a batch: its position, sequences and part in their order.
constexpr std::uint64_t kCellBytes = 96;

ContextNeeds measure(const std::string& path, const llama_context_params& params) {
    llama_model_params model = llama_model_default_params();
    ggml_backend_dev_t none = nullptr;
    model.devices = &none;
    model.n_gpu_layers = 0;
    model.use_extra_bufts = false;
    std::vector<ggml_backend_dev_t> devices;
    std::uint32_t layers = 0, trained = 0, experts = 0;
    ContextNeeds needs;
    for (const auto& place : common_get_device_memory_data(path.c_str(), &model, &params, devices, layers,
                                                           trained, experts, GGML_LOG_LEVEL_ERROR)) {
        needs.cache += place.context;
        needs.compute += place.compute;
    }
    return needs;
}

/// Needs of large contexts are those of smaller ones, scaled: they grow in proportion.
ContextNeeds measure_or_predict(const std::string& path, llama_context_params params) {
    if (params.n_ctx <= kMostMeasured || params.embeddings) return measure(path, params);
    const std::uint64_t wanted = params.n_ctx;
    params.n_ctx = kMostMeasured;
    const ContextNeeds whole = measure(path, params);
    params.n_ctx = kMostMeasured / 2;
    const ContextNeeds half = measure(path, params);
    const std::uint64_t steps = (wanted - kMostMeasured + kMostMeasured / 2 - 1) / (kMostMeasured / 2);
    return {.cache = whole.cache + steps * (whole.cache - std::min(whole.cache, half.cache)),
            .compute = whole.compute + steps * (whole.compute - std::min(whole.compute, half.compute))};
}

}  // namespace

ContextNeeds measure_context(const std::string& path, const ModelFile& file, const ContextMemory& settings) {
    const std::uint32_t trained = std::max(1u, file.trained_context);
    Result<llama_context_params> context = sized_context_params(settings, trained, !file.is_recurrent);
    if (!context.ok()) return {};  // the error comes when the context is made
    llama_context_params params = context.value();
    if (settings.embeddings || file.embeddings) size_for_embeddings(settings, trained, params);
    ContextNeeds needs;
    expect_llama_errors(true);
    try {
        needs = measure_or_predict(path, params);
    } catch (const std::exception& e) {
        HR_LOG(debug, {}, "{}: the context cannot be measured: {}", path, e.what());
    }
    expect_llama_errors(false);
    if (needs.cache) needs.cells = kCellBytes * (std::uint64_t{params.n_ctx} + params.n_batch);
    if (!params.offload_kqv) needs.cache = 0;  // it stays on this machine
    return needs;
}

}  // namespace headrace::llm
