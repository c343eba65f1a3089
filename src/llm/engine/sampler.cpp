#include "llm/engine/sampler.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <functional>
#include <memory>
#include <regex>

#include <common/sampling.h>

#include "llm/checks/grammar_check.h"
#include "llm/checks/trigger_pattern.h"
#include "llm/log/llama_log.h"
#include "llm/schema/schema_grammar.h"

namespace headrace::llm {
namespace {

common_sampler_type type_of(SamplerKind kind) {
    switch (kind) {
        case SamplerKind::penalties: return COMMON_SAMPLER_TYPE_PENALTIES;
        case SamplerKind::dry: return COMMON_SAMPLER_TYPE_DRY;
        case SamplerKind::top_n_sigma: return COMMON_SAMPLER_TYPE_TOP_N_SIGMA;
        case SamplerKind::top_k: return COMMON_SAMPLER_TYPE_TOP_K;
        case SamplerKind::typical_p: return COMMON_SAMPLER_TYPE_TYPICAL_P;
        case SamplerKind::top_p: return COMMON_SAMPLER_TYPE_TOP_P;
        case SamplerKind::min_p: return COMMON_SAMPLER_TYPE_MIN_P;
        case SamplerKind::xtc: return COMMON_SAMPLER_TYPE_XTC;
        case SamplerKind::temperature: return COMMON_SAMPLER_TYPE_TEMPERATURE;
        case SamplerKind::infill: return COMMON_SAMPLER_TYPE_INFILL;
        case SamplerKind::adaptive_p: return COMMON_SAMPLER_TYPE_ADAPTIVE_P;
    }
    return COMMON_SAMPLER_TYPE_NONE;
}

common_grammar_trigger_type type_of(GrammarTrigger::Type type) {
    switch (type) {
        case GrammarTrigger::Type::token: return COMMON_GRAMMAR_TRIGGER_TYPE_TOKEN;
        case GrammarTrigger::Type::word: return COMMON_GRAMMAR_TRIGGER_TYPE_WORD;
        case GrammarTrigger::Type::pattern: return COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN;
        case GrammarTrigger::Type::pattern_full: return COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN_FULL;
    }
    return COMMON_GRAMMAR_TRIGGER_TYPE_WORD;
}

common_params_sampling llama_params(const RequestSettings& request) {
    static_assert(kRandomSeed == LLAMA_DEFAULT_SEED && std::is_same_v<llama_token, std::int32_t>);
    const SamplingSettings& settings = request.sampling;
    common_params_sampling params;
#define HR_PARAMETER(type, field, ...) params.field = settings.field;
#define HR_FIELD(...)
#define HR_CUSTOM(...)
#include "llm/settings/sampling.inc"
#undef HR_PARAMETER
#undef HR_FIELD
#undef HR_CUSTOM
    params.samplers.clear();
    for (const SamplerKind kind : settings.samplers) params.samplers.push_back(type_of(kind));
    for (const GrammarTrigger& trigger : settings.grammar_triggers)
        params.grammar_triggers.push_back({type_of(trigger.type), trigger.value, trigger.token});
    for (const TokenBias& bias : settings.logit_bias) params.logit_bias.push_back({bias.token, bias.bias});
    params.generation_prompt = request.demands.generation_prompt;
    params.reasoning_budget_start = request.demands.thinking_start;
    params.reasoning_budget_end = request.demands.thinking_ends;
    params.reasoning_budget_forced = request.demands.thinking_cut_off;
    return params;
}

/// What the grammar of a request is made from.
std::string_view grammar_parameter(const RequestSettings& settings) {
    return !settings.demands.grammar.empty() ? "tools"
           : !settings.grammar.empty()       ? "grammar"
                                             : "json_schema";
}

Status add_grammar(const RequestSettings& settings, common_params_sampling& params) {
    params.grammar_lazy = settings.grammar_lazy;
    if (!settings.demands.grammar.empty()) {
        params.grammar = {COMMON_GRAMMAR_TYPE_TOOL_CALLS, settings.demands.grammar};
    } else if (!settings.grammar.empty()) {
        params.grammar = {COMMON_GRAMMAR_TYPE_USER, settings.grammar};
    } else if (!settings.json_schema.empty()) {
        Result<std::string> grammar = schema_grammar(settings.json_schema);
        if (!grammar.ok()) return grammar.error().within("json_schema").of_parameter("json_schema");
        params.grammar = {COMMON_GRAMMAR_TYPE_USER, std::move(grammar).value()};
    }
    return success();
}

void add_logit_biases(const Model& model, const RequestSettings& settings, common_params_sampling& params) {
    const int size = model.vocabulary_size();
    std::erase_if(params.logit_bias,
                  [&](const llama_logit_bias& b) { return b.token < 0 || b.token >= size; });
    for (const auto& [text, bias] : settings.sampling.logit_bias_text)
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

/// A grammar of calls begins with what the template has put before the answer. llama.cpp takes that in
/// tokens, and drops the first one where it begins with a space that the text has not.
Status take_beginning(const Model& model, const common_params_sampling& params,
                      const std::function<bool(llama_token)>& accept) {
    if (params.grammar.type != COMMON_GRAMMAR_TYPE_TOOL_CALLS) return success();
    const std::string& text = params.generation_prompt;
    std::string taken;
    for (const llama_token token : model.tokenize(text, false, true)) {
        const std::string piece = model.piece(token, true);
        if (taken.empty() && std::isspace(static_cast<unsigned char>(piece[0])) &&
            !std::isspace(static_cast<unsigned char>(text[0])))
            continue;
        taken += piece;
        if (accept(token)) continue;
        return invalid(
            "tools: the chat template begins an answer with '{}', of which llama.cpp reads '{}' in tokens of "
            "this vocabulary, so that the grammar of calls cannot begin: give the model its own template, or "
            "leave out tools",
            text, taken);
    }
    return success();
}

Status try_beginning(const Model& model, const common_params_sampling& params, llama_sampler& grammar) {
    return take_beginning(model, params, [&](llama_token token) {
        try {
            llama_sampler_accept(&grammar, token);
            return true;
        } catch (const std::exception&) {
            return false;
        }
    });
}

/// common_sampler_init leaves its chain behind when it throws, and a caller may send wrong grammars for ever:
/// they are tried before. Throws std::regex_error for a trigger's pattern.
Status try_grammar(const Model& model, const common_params_sampling& params,
                   const std::vector<GrammarTrigger>& triggers) {
    const std::string& text = params.grammar.grammar;
    if (text.empty() || (!params.grammar_lazy && model.grammars().find(text) != nullptr)) return success();
    take_llama_errors();
    const std::unique_ptr<llama_sampler, decltype(&llama_sampler_free)> grammar(
        llama_sampler_init_grammar(llama_model_get_vocab(model.get()), text.c_str(), "root"),
        &llama_sampler_free);
    if (!grammar)
        return invalid("grammar: llama.cpp refuses it: {}. No rule may begin with itself",
                       take_llama_errors());
    if (!params.grammar_lazy) return try_beginning(model, params, *grammar);  // triggers are not read
    for (const GrammarTrigger& trigger : triggers)
        if (is_pattern(trigger)) static_cast<void>(std::regex(trigger.value));
    return success();
}

/// Takes the grammar out of what llama.cpp gets, which looks at each token of the vocabulary anew for each
/// token of an answer. Left to it are grammars that wait for a trigger, and those with single tokens.
Result<std::optional<GrammarPlace>> take_grammar(const Model& model, common_params_sampling& params) {
    std::optional<GrammarPlace> place;
    if (params.grammar.grammar.empty() || params.grammar_lazy) return place;
    std::shared_ptr<GrammarAutomaton> automaton = model.grammars().automaton(params.grammar.grammar);
    if (!automaton) return place;
    place.emplace(model.grammars(), std::move(automaton));
    HR_TRY(take_beginning(model, params, [&](llama_token token) { return place->accept(token); }));
    params.grammar = {};
    return place;
}

bool is_greedy(const common_params_sampling& params) {
    const bool penalties =
        params.penalty_last_n != 0 &&
        (params.penalty_repeat != 1.0f || params.penalty_freq != 0.0f || params.penalty_present != 0.0f);
    return params.temp <= 0.0f && params.mirostat == 0 && !penalties && params.dry_multiplier == 0.0f &&
           params.grammar.grammar.empty() && params.n_probs == 0 &&
           std::all_of(params.logit_bias.begin(), params.logit_bias.end(),
                       [](const llama_logit_bias& b) { return b.bias == -INFINITY; }) &&
           params.reasoning_budget_tokens < 0 && params.dynatemp_range <= 0.0f &&
           params.xtc_probability <= 0.0f && params.adaptive_target < 0.0f;
}

/// The first place of the largest value; `size` when none is a number. std::max_element compares one value at
/// a time, which is a fiftieth of a step with eight streams and a large vocabulary; lanes of maxima are
/// vector instructions.
std::ptrdiff_t largest(const float* values, int size) {
    constexpr int kLanes = 16, kBlock = 4096;
    float most = -INFINITY;
    int found = 0;
    for (int start = 0; start < size; start += kBlock) {
        const int end = std::min(size, start + kBlock), whole = start + (end - start) / kLanes * kLanes;
        std::array<float, kLanes> maxima;
        maxima.fill(-INFINITY);
        for (int i = start; i < whole; i += kLanes)
            for (int lane = 0; lane < kLanes; ++lane)
                maxima[lane] = values[i + lane] > maxima[lane] ? values[i + lane] : maxima[lane];
        float here = *std::max_element(maxima.begin(), maxima.end());
        for (int i = whole; i < end; ++i) here = std::max(here, values[i]);
        if (here <= most) continue;
        most = here;
        found = start;
    }
    return std::find(values + found, values + size, most) - values;
}

}  // namespace

Result<common_params_sampling> sampling_params(const Model& model, const RequestSettings& settings) {
    common_params_sampling params = llama_params(settings);
    HR_TRY(add_grammar(settings, params));
    const auto is_token = [&](std::string_view text) {
        int number = 0;
        if (!text.starts_with("<[")) return model.tokenize(text, false, true).size() == 1;
        const auto read = std::from_chars(text.data() + 2, text.data() + text.size(), number);
        return read.ec == std::errc() && number < model.vocabulary_size();
    };
    if (!params.grammar.grammar.empty())
        if (const Status right = check_grammar(params.grammar.grammar, is_token); !right.ok())
            return right.error().of_parameter(grammar_parameter(settings));
    add_logit_biases(model, settings, params);
    add_triggers(model, settings, params);
    params.backend_sampling = false;
    return params;
}

Result<Sampler> Sampler::create(const Model& model, const RequestSettings& settings, const Tokens& prompt) {
    HR_ASSIGN(common_params_sampling params, sampling_params(model, settings));
    try {
        if (const Status taken = try_grammar(model, params, settings.sampling.grammar_triggers); !taken.ok())
            return taken.error().of_parameter(grammar_parameter(settings));
        Result<std::optional<GrammarPlace>> grammar = take_grammar(model, params);
        if (!grammar.ok()) return grammar.error().of_parameter(grammar_parameter(settings));
        const bool greedy = is_greedy(params);
        Chain chain(common_sampler_init(model.get(), params));
        if (!chain) return invalid("the sampler cannot be set up; is the grammar right?");
        if (!greedy)
            for (llama_token token : prompt)
                if (!is_image_token(token)) common_sampler_accept(chain.get(), token, false);
        HR_ASSIGN(TokenFilter filter, TokenFilter::create(model, settings, params.preserved_tokens));
        if (greedy)  // its biases do nothing but ban; the chain, which knows them, is not used then
            for (const llama_logit_bias& bias : params.logit_bias) filter.ban(bias.token);
        Sampler sampler(std::move(chain), std::move(grammar).value(), std::move(filter), greedy,
                        model.vocabulary_size(), settings);
        sampler.preserved_ = std::move(params.preserved_tokens);
        return sampler;
    } catch (const std::exception& e) {
        return invalid("sampling: {}", e.what());
    }
}

void Sampler::FreeChain::operator()(common_sampler* chain) const { common_sampler_free(chain); }

bool Sampler::has_patterns(const SamplingSettings& settings) {
    return std::any_of(settings.grammar_triggers.begin(), settings.grammar_triggers.end(), is_pattern);
}

/// llama.cpp searches all of an answer's text in each step.
Status Sampler::count_searched(const llama_vocab* vocab, llama_token token) {
    if (!searches_) return success();
    searched_ += static_cast<std::size_t>(-llama_token_to_piece(vocab, token, nullptr, 0, 0, true));
    if (searched_ <= kMostSearchedForTriggers) return success();
    return invalid(
               "grammar_triggers: the answer has more than {} bytes, which is as far as patterns are looked "
               "for; use triggers of type word, or a smaller n_predict",
               kMostSearchedForTriggers)
        .of_parameter("grammar_triggers");
}

/// Whether the chosen token is one that may not come next, taken for want of another.
bool Sampler::nothing_is_left(llama_token chosen, const float* logits) const {
    if (greedy_) return logits[chosen] == -INFINITY;
    const llama_token_data_array* all = common_sampler_get_candidates(chain_.get(), false);
    return logits[chosen] == -INFINITY || !(all->data[all->selected].logit > -INFINITY);
}

llama_token Sampler::sampled_token(llama_context* context, int index) {
    if (!greedy_) return common_sampler_sample(chain_.get(), context, index);
    return static_cast<llama_token>(largest(llama_get_logits_ith(context, index), vocabulary_));
}

Result<llama_token> Sampler::next_token(llama_context* context, int index) {
    float* logits = llama_get_logits_ith(context, index);
    filter_.mask(logits);
    for (;;) {
        llama_token token = sampled_token(context, index);
        // As llama.cpp does: most tokens are right as they come, and a seed's random numbers are the same.
        if (grammar_ && !grammar_->admits(token)) {
            grammar_->mask(logits);
            token = sampled_token(context, index);
        }
        if (filter_.is_idle()) return token;
        if (!nothing_is_left(token, logits)) {
            if (filter_.admits(token, logits)) return token;
        } else if (!filter_.release_ends(logits)) {
            return invalid(
                "forbidden_tokens, logit_bias and the grammar leave no token that may come next; forbid "
                "less");
        }
    }
}

Status Sampler::check_logits(const float* logits) const {
    if (!std::isnan(logits[0]) || largest(logits, vocabulary_) != vocabulary_) return success();
    return failure(Code::backend_failure,
                   "the model computes no numbers (NaN): its weights are damaged, which check_tensors finds "
                   "when it is loaded, or too large for their type");
}

Result<Sampler::Choice> Sampler::expected(llama_context* context, int index, llama_token token) const {
    HR_TRY(check_logits(llama_get_logits_ith(context, index)));
    Choice choice{.token = token};
    show_model(probabilities(context, index), choice);
    return choice;
}

/// What is likely is taken down before the next position is sampled: the chain holds one at a time.
Result<Sampler::Choice> Sampler::choose(llama_context* context, int index) {
    HR_TRY(check_logits(llama_get_logits_ith(context, index)));
    Choice choice{};
    // Those of the model's choice, before the filter changes the logits.
    std::vector<llama_token_data> all;
    if (shown_ > 0 && !shows_remaining_) all = probabilities(context, index);
    HR_ASSIGN(choice.token, next_token(context, index));
    filter_.accept(choice.token);
    if (grammar_ && !grammar_->accept(choice.token))
        return failure(Code::backend_failure,
                       "the grammar leaves no token of the vocabulary that may come next");
    if (greedy_) return choice;
    if (!all.empty()) show_model(std::move(all), choice);
    if (shown_ > 0 && shows_remaining_) show_remaining(choice);
    common_sampler_accept(chain_.get(), choice.token, true);
    return choice;
}

Result<std::vector<Sampler::Choice>> Sampler::sample(llama_context* context, const std::vector<int>& indices,
                                                     const Tokens& draft) {
    const llama_vocab* vocab = llama_model_get_vocab(llama_get_model(context));
    try {
        std::vector<Choice> choices;
        for (std::size_t i = 0; i < indices.size(); ++i) {
            HR_ASSIGN(Choice choice, choose(context, indices[i]));
            choices.push_back(std::move(choice));
            const llama_token token = choices.back().token;
            HR_TRY(count_searched(vocab, token));
            if (i < draft.size() && (draft[i] != token || llama_vocab_is_eog(vocab, token))) break;
        }
        return choices;
    } catch (const std::exception& e) {
        if (lazy_)
            return invalid(
                       "grammar: it refuses the text that triggered it ({}). A lazy grammar rules from its "
                       "trigger on, so it must begin with the trigger's own text",
                       e.what())
                .of_parameter("grammar_lazy");
        return failure(Code::backend_failure, "sampling: {}", e.what());
    }
}

std::vector<llama_token_data> Sampler::probabilities(llama_context* context, int index) const {
    const float* logits = llama_get_logits_ith(context, index);
    std::vector<llama_token_data> all(static_cast<std::size_t>(vocabulary_));
    const float most = *std::max_element(logits, logits + vocabulary_);
    double sum = 0;
    for (int token = 0; token < vocabulary_; ++token) {
        all[static_cast<std::size_t>(token)] = {token, logits[token], std::exp(logits[token] - most)};
        sum += all[static_cast<std::size_t>(token)].p;
    }
    for (llama_token_data& entry : all) entry.p = static_cast<float>(entry.p / sum);
    return all;
}

void Sampler::show_model(std::vector<llama_token_data> all, Choice& choice) const {
    choice.probability = all[static_cast<std::size_t>(choice.token)].p;
    const std::size_t size = std::min(all.size(), shown_);
    std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(size), all.end(),
                      [](const llama_token_data& a, const llama_token_data& b) { return a.p > b.p; });
    all.resize(size);
    choice.likeliest = std::move(all);
}

void Sampler::show_remaining(Choice& choice) {
    const llama_token_data_array* all = common_sampler_get_candidates(chain_.get(), true);
    for (std::size_t i = 0; i < all->size; ++i)
        if (all->data[i].id == choice.token) choice.probability = all->data[i].p;
    choice.likeliest.assign(all->data, all->data + std::min(all->size, shown_));
    // What the samplers took away has no probability.
    std::erase_if(choice.likeliest, [](const llama_token_data& entry) { return !(entry.p > 0); });
}

}  // namespace headrace::llm
