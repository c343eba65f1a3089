#include "llm/sampler.h"

#include <common/json-schema-to-grammar.h>
#include <common/json.h>

#include <algorithm>
#include <cmath>

namespace headrace::llm {
namespace {

Status add_grammar(const RequestSettings& settings, common_params_sampling& params) {
    params.grammar_lazy = settings.grammar_lazy;
    if (!settings.grammar.empty()) {
        params.grammar = {COMMON_GRAMMAR_TYPE_USER, settings.grammar};
    } else if (!settings.json_schema.empty()) {
        try {
            params.grammar = {COMMON_GRAMMAR_TYPE_USER,
                              json_schema_to_grammar(common_json::parse(settings.json_schema))};
        } catch (const std::exception& e) {
            return invalid("grammar.json_schema: {}", e.what());
        }
    }
    return success();
}

void add_logit_biases(const Model& model, const RequestSettings& settings, common_params_sampling& params) {
    const int size = model.vocabulary_size();
    std::erase_if(params.logit_bias,
                  [&](const llama_logit_bias& b) { return b.token < 0 || b.token >= size; });
    for (const auto& [text, bias] : settings.logit_bias_text)
        for (llama_token token : model.tokenize(text, false, true))
            params.logit_bias.push_back({token, bias});
    if (!params.ignore_eos) return;
    for (llama_token token = 0; token < size; ++token)
        if (model.ends_answer(token)) params.logit_bias.push_back({token, -INFINITY});
}

/// A trigger that is one token of the vocabulary, among the preserved ones, is matched as a token.
void add_triggers(const Model& model, const RequestSettings& settings, common_params_sampling& params) {
    for (const std::string& text : settings.preserved_tokens) {
        const Tokens tokens = model.tokenize(text, false, true);
        if (tokens.size() == 1) params.preserved_tokens.insert(tokens.front());
    }
    for (common_grammar_trigger& trigger : params.grammar_triggers) {
        if (trigger.type != COMMON_GRAMMAR_TRIGGER_TYPE_WORD) continue;
        const Tokens tokens = model.tokenize(trigger.value, false, true);
        if (tokens.size() != 1 || !params.preserved_tokens.contains(tokens.front())) continue;
        trigger.type = COMMON_GRAMMAR_TRIGGER_TYPE_TOKEN;
        trigger.token = tokens.front();
    }
}

bool is_greedy(const common_params_sampling& params) {
    const bool penalties =
        params.penalty_last_n != 0 &&
        (params.penalty_repeat != 1.0f || params.penalty_freq != 0.0f || params.penalty_present != 0.0f);
    return params.temp <= 0.0f && params.mirostat == 0 && !penalties && params.dry_multiplier == 0.0f &&
           params.grammar.grammar.empty() && params.logit_bias.empty() && params.n_probs == 0 &&
           params.reasoning_budget_tokens < 0 && params.dynatemp_range <= 0.0f &&
           params.xtc_probability <= 0.0f && params.adaptive_target < 0.0f;
}

}  // namespace

Result<common_params_sampling> sampling_params(const Model& model, const RequestSettings& settings) {
    common_params_sampling params = settings.sampling;
    HR_TRY(add_grammar(settings, params));
    add_logit_biases(model, settings, params);
    add_triggers(model, settings, params);
    params.backend_sampling = false;
    return params;
}

Result<Sampler> Sampler::create(const Model& model, const RequestSettings& settings, const Tokens& prompt) {
    HR_ASSIGN(common_params_sampling params, sampling_params(model, settings));
    const bool greedy = is_greedy(params);
    try {
        common_sampler_ptr chain(common_sampler_init(model.get(), params));
        if (!chain) return invalid("the sampler cannot be set up; is the grammar right?");
        if (!greedy)
            for (llama_token token : prompt) common_sampler_accept(chain.get(), token, false);
        return Sampler(std::move(chain), greedy, model.vocabulary_size());
    } catch (const std::exception& e) {
        return invalid("sampling: {}", e.what());
    }
}

llama_token Sampler::likeliest(llama_context* context, int index) const {
    const float* logits = llama_get_logits_ith(context, index);
    return static_cast<llama_token>(std::max_element(logits, logits + vocabulary_) - logits);
}

Result<Tokens> Sampler::sample(llama_context* context, const std::vector<int>& indices, const Tokens& draft) {
    try {
        if (!greedy_) return common_sampler_sample_and_accept_n(chain_.get(), context, indices, draft);
        Tokens tokens;
        for (size_t i = 0; i < indices.size(); ++i) {
            tokens.push_back(likeliest(context, indices[i]));
            if (i < draft.size() && draft[i] != tokens.back()) break;
        }
        return tokens;
    } catch (const std::exception& e) {
        return failure(Code::backend_failure, "sampling: {}", e.what());
    }
}

std::vector<llama_token_data> Sampler::probabilities(llama_context* context, int index, int count) const {
    const float* logits = llama_get_logits_ith(context, index);
    std::vector<llama_token_data> all(static_cast<size_t>(vocabulary_));
    const float most = *std::max_element(logits, logits + vocabulary_);
    double sum = 0;
    for (int token = 0; token < vocabulary_; ++token) {
        all[static_cast<size_t>(token)] = {token, logits[token], std::exp(logits[token] - most)};
        sum += all[static_cast<size_t>(token)].p;
    }
    const size_t size = std::min(all.size(), static_cast<size_t>(std::max(count, 0)));
    std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(size), all.end(),
                      [](const llama_token_data& a, const llama_token_data& b) { return a.p > b.p; });
    all.resize(size);
    for (llama_token_data& entry : all) entry.p = static_cast<float>(entry.p / sum);
    return all;
}

std::vector<llama_token_data> Sampler::remaining(int count) {
    const llama_token_data_array* all = common_sampler_get_candidates(chain_.get(), true);
    const size_t size = std::min(all->size, static_cast<size_t>(std::max(count, 0)));
    return {all->data, all->data + size};
}

}  // namespace headrace::llm
