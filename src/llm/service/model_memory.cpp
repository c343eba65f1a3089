#include "llm/service/model_memory.h"

#include <algorithm>
#include <filesystem>

#include "base/machine_memory.h"
#include "llm/model/context_needs.h"
#include "llm/model/model.h"

namespace headrace::llm {
namespace {

std::uint64_t bytes_of_file(const std::string& path) {
    std::error_code error;
    const std::uintmax_t bytes = path.empty() ? 0 : std::filesystem::file_size(path, error);
    return error ? 0 : bytes;  // a file that is missing is an error of the load
}

/// Bytes of the keys and values and of the compute buffers, as llama.cpp measures them.
std::uint64_t measured_context(const std::string& path, const ModelFile& file, ContextMemory context) {
    context.offload_kqv = true;  // else they would not be counted, as none of a device's
    const ContextNeeds needs = Model::context_needs(path, file, context);
    // A context as large as the model's training is made smaller where memory is short.
    const bool is_flexible = context.n_ctx == kTrainedContext;
    return (is_flexible ? std::min(needs.cache, available_memory() / 2) : needs.cache) + needs.compute +
           needs.cells;
}

/// Adds the model that drafts.
Status add_draft_memory(const ContextSettings& settings, ModelMemory& all) {
    if (settings.draft_model.empty()) return success();
    HR_ASSIGN(const ModelFile file, inspect_model_file(settings.draft_model));
    ContextMemory context = settings;
    context.type_k = settings.draft_type_k;
    context.type_v = settings.draft_type_v;
    all.weights += file.bytes;
    all.context += measured_context(settings.draft_model, file, context);
    return success();
}

}  // namespace

Result<ModelMemory> memory_of_model(const std::string& path, const ModelFile& file,
                                    const EngineSettings& settings, bool measures_context) {
    ModelMemory all{.weights = file.bytes + bytes_of_file(settings.model.mmproj)};
    for (const auto& [adapter, scale] : settings.model.lora) all.weights += bytes_of_file(adapter);
    if (!measures_context) return all;
    all.context = measured_context(path, file, settings.context);
    if (all.context && !settings.model.mmproj.empty()) {  // 0 says that nothing is known
        const std::uint64_t whole = Model::projector_needs(settings.model);
        all.context += whole - std::min(whole, bytes_of_file(settings.model.mmproj));
    }
    HR_TRY(add_draft_memory(settings.context, all));
    return all;
}

Result<ModelShare> share_for_model(const std::string& path, bool is_copied, const EngineSettings& settings,
                                   const std::shared_ptr<MemoryBudget>& budget) {
    HR_ASSIGN(const ModelFile file, inspect_model_file(path, settings.model.kv_overrides));
    HR_ASSIGN(ModelMemory memory, memory_of_model(path, file, settings, true));
    if (memory.context == 0)
        return invalid(
            "the memory of the model's context is not known, as llama.cpp cannot lay it out for these "
            "parameters, and the host limits memory (max_memory_bytes)");
    if (is_copied) memory.weights *= 2;
    ModelShare share{.path = is_copied ? "" : path, .asked = settings, .held = HeldMemory(budget)};
    const std::string what = fmt::format("the model, {} bytes of weights and {} of its context with n_ctx {}",
                                         memory.weights, memory.context, settings.context.n_ctx);
    Status taken = share.held.become(memory.weights + memory.context, what);
    if (!taken.ok())
        return Error{taken.error().code, taken.error().message + ", or ask for a smaller n_ctx or n_ubatch",
                     "n_ctx"};
    if (!settings.cache.enable_prompt_cache) return share;
    const std::uint64_t most = budget->left() / 4 >> 20,
                        asked = static_cast<std::uint32_t>(settings.cache.ram_mib);
    share.cache_mib = static_cast<int>(std::min({asked, most, std::uint64_t{INT32_MAX}}));
    share.held.note(share.held.bytes() + (static_cast<std::uint64_t>(share.cache_mib) << 20));
    return share;
}

}  // namespace headrace::llm
