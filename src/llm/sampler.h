#pragma once
#include <common/sampling.h>

#include "base/result.h"
#include "llm/model.h"
#include "llm/settings.h"

namespace headrace::llm {

/// Chooses tokens as the settings say: llama.cpp's sampler chain with grammar and penalties.
class Sampler {
public:
    /// Errors: a grammar, schema or trigger that cannot be used.
    static Result<Sampler> create(const Model& model, const RequestSettings& settings, const Tokens& prompt);

    /// Tokens chosen at the positions of a context's last batch: one for each draft token that was right, and
    /// one more. indices.size() is draft.size() + 1.
    Result<Tokens> sample(llama_context* context, const std::vector<int>& indices, const Tokens& draft);
    /// The model's likeliest tokens at a position of the last batch, with their probabilities.
    std::vector<llama_token_data> probabilities(llama_context* context, int index, int count) const;
    /// The likeliest of those that the sampler chain left at the last position it sampled.
    std::vector<llama_token_data> remaining(int count);

private:
    explicit Sampler(common_sampler_ptr chain, bool greedy, int vocabulary)
        : chain_(std::move(chain)), greedy_(greedy), vocabulary_(vocabulary) {}
    llama_token likeliest(llama_context* context, int index) const;

    common_sampler_ptr chain_;
    bool greedy_;  // nothing but the largest logit counts
    int vocabulary_;
};

/// The settings as llama.cpp takes them, texts turned into tokens of the model.
Result<common_params_sampling> sampling_params(const Model& model, const RequestSettings& settings);

}  // namespace headrace::llm
