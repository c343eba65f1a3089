#pragma once
#include <cstdint>
#include <mutex>
#include <vector>

#include <llama.h>

#include "base/result.h"
#include "llm/model/model.h"
#include "llm/settings.h"

namespace headrace::llm {

/// llama.cpp's parameters of a generating context. Errors name the parameter that the model cannot do.
Result<llama_context_params> context_params(const Model& model, const ContextSettings& settings);

/// The part that decides on its memory; known before the model is loaded.
Result<llama_context_params> sized_context_params(const ContextMemory& settings, std::uint32_t trained,
                                                  bool is_divisible);

/// Texts of a batch for embeddings at most.
constexpr std::uint32_t kMostTexts = 64;

/// Sets what a context for embeddings has beside others; returns the tokens of the longest text.
std::uint32_t size_for_embeddings(const ContextMemory& settings, std::uint32_t trained,
                                  llama_context_params& params);

/// Those that a step of a model may use at most.
int most_threads(const Model& model);

/// Held while a step computes on the CPU: engines that compute at the same time would wait for each other's
/// threads. A model on remote hosts takes a turn at each of them in place of that, as a host may be slow.
class ComputeTurn {
public:
    explicit ComputeTurn(const Model& model);
    ~ComputeTurn();
    ComputeTurn(const ComputeTurn&) = delete;
    ComputeTurn& operator=(const ComputeTurn&) = delete;

private:
    std::vector<std::unique_lock<std::mutex>> hosts_;
};

}  // namespace headrace::llm
