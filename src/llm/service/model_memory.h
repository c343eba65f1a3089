#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
#include "llm/checks/model_file.h"
#include "llm/service/memory_budget.h"
#include "llm/settings.h"

namespace headrace::llm {

/// Bytes that a model will take, known before anything is allocated.
struct ModelMemory {
    std::uint64_t weights = 0;  ///< in all files, adapters and what reads images included
    /// Keys and values, or states, and the compute buffers, also of what reads images, as llama.cpp lays them
    /// out; 0: it cannot.
    std::uint64_t context = 0;
};

/// measures_context: that takes longest, up to a second; the draft model is counted then.
Result<ModelMemory> memory_of_model(const std::string& path, const ModelFile& file,
                                    const EngineSettings& settings, bool measures_context);

/// A model's part of a budget, which all that load it alike share.
struct ModelShare {
    std::string path;  ///< empty: the weights were given as bytes
    EngineSettings asked;
    int cache_mib = 0;  ///< what remembered prompts get
    HeldMemory held;
};

/// Takes the memory of a model, weights whether they are mapped or copied, out of the budget. Remembered
/// prompts get a quarter of what is left then, at most. is_copied: the weights are copied, and may be
/// reordered in a second copy. Code::out_of_memory with the sizes and the remedy.
Result<ModelShare> share_for_model(const std::string& path, bool is_copied, const EngineSettings& settings,
                                   const std::shared_ptr<MemoryBudget>& budget);

}  // namespace headrace::llm
