#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include <llama.h>

#include "base/result.h"
#include "llm/engine/token_filter.h"
#include "llm/model/model.h"
#include "llm/settings.h"

struct common_params_sampling;
struct common_sampler;

namespace headrace::llm {

/// Chooses tokens as the settings say: llama.cpp's sampler chain with penalties, under a grammar.
class Sampler {
public:
    /// Errors: a grammar, schema or trigger that cannot be used.
    static Result<Sampler> create(const Model& model, const RequestSettings& settings, const Tokens& prompt);

    struct Choice {
        llama_token token;
        std::vector<llama_token_data> likeliest;  ///< with their probabilities, as many as n_probs wants
        float probability = 0;                    ///< of the token, where n_probs wants any
    };
    /// Tokens chosen at the positions of a context's last batch: one for each draft token that was right, and
    /// one more. indices.size() is draft.size() + 1.
    Result<std::vector<Choice>> sample(llama_context* context, const std::vector<int>& indices,
                                       const Tokens& draft);

    /// A token that came at a position of the last batch without being chosen, as the model expected it.
    Result<Choice> expected(llama_context* context, int index, llama_token token) const;

    /// Whether a special token shows in the text.
    bool preserves(llama_token token) const { return preserved_.contains(token); }

private:
    struct FreeChain {
        void operator()(common_sampler* chain) const;
    };
    using Chain = std::unique_ptr<common_sampler, FreeChain>;

    Sampler(Chain chain, std::optional<GrammarPlace> grammar, TokenFilter filter, bool greedy, int vocabulary,
            const RequestSettings& settings)
        : chain_(std::move(chain)),
          grammar_(std::move(grammar)),
          filter_(std::move(filter)),
          greedy_(greedy),
          shows_remaining_(settings.post_sampling_probs),
          lazy_(settings.grammar_lazy),
          searches_(lazy_ && has_patterns(settings.sampling)),
          vocabulary_(vocabulary),
          shown_(static_cast<std::size_t>(std::max(settings.sampling.n_probs, 0))) {}
    static bool has_patterns(const SamplingSettings& settings);
    Status check_logits(const float* logits) const;
    Result<Choice> choose(llama_context* context, int index);
    Status count_searched(const llama_vocab* vocab, llama_token token);
    Result<llama_token> next_token(llama_context* context, int index);
    llama_token sampled_token(llama_context* context, int index);
    bool nothing_is_left(llama_token chosen, const float* logits) const;
    /// All tokens' probabilities at a position of the last batch, as the model has them.
    std::vector<llama_token_data> probabilities(llama_context* context, int index) const;
    /// Those of the likeliest tokens and of the chosen one.
    void show_model(std::vector<llama_token_data> all, Choice& choice) const;
    /// The same of what the sampler chain left at the position it has just sampled.
    void show_remaining(Choice& choice);

    Chain chain_;
    std::optional<GrammarPlace> grammar_;  // unless the chain has llama.cpp's: see Sampler::create
    TokenFilter filter_;
    bool greedy_;               // nothing but the largest logit counts
    bool shows_remaining_;      // the likeliest of what the samplers leave, not of the model's choice
    bool lazy_;                 // the grammar waits for a trigger
    bool searches_;             // for triggers that are patterns
    std::size_t searched_ = 0;  // bytes of the answer
    int vocabulary_;
    std::size_t shown_;
    std::set<llama_token> preserved_;
};

/// The settings as llama.cpp takes them, texts turned into tokens of the model.
Result<common_params_sampling> sampling_params(const Model& model, const RequestSettings& settings);

}  // namespace headrace::llm
