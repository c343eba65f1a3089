#include "llm/engine/token_filter.h"

#include <cmath>

namespace headrace::llm {
namespace {

/// Choices that are refused one by one before the whole vocabulary is looked through.
constexpr int kMostRefused = 16;

}  // namespace

Result<TokenFilter> TokenFilter::create(const Model& model, const RequestSettings& settings,
                                        std::set<llama_token> shown) {
    HR_ASSIGN(StopStrings forbidden, StopStrings::create(settings.forbidden, "forbidden_tokens"));
    HR_ASSIGN(StopStrings required, StopStrings::create(settings.required, "required_tokens"));
    TokenFilter filter(model, std::move(forbidden), std::move(required));
    filter.shown_ = std::move(shown);
    filter.shows_special_ = settings.echo_special;
    filter.may_end_ = filter.required_.empty();
    filter.watches_ = !filter.forbidden_.empty() || !filter.required_.empty();
    if (filter.watches_) filter.find_tokens();
    return filter;
}

/// The tokens that have a forbidden text inside, whatever comes before them, and those that end answers.
void TokenFilter::find_tokens() {
    for (llama_token token = 0; token < model_->vocabulary_size(); ++token)
        if (model_->ends_answer(token))
            ends_.push_back(token);
        else if (!forbidden_.empty() && forbidden_.is_inside(piece(token)))
            always_.push_back(token);
}

/// As it is shown.
std::string TokenFilter::piece(llama_token token) const {
    return model_->piece(token, shows_special_ || shown_.contains(token));
}

bool TokenFilter::completes_forbidden(llama_token token) const {
    return !forbidden_.empty() && !model_->ends_answer(token) && forbidden_.would_complete(piece(token));
}

void TokenFilter::mask(float* logits) {
    refused_ = 0;
    for (const llama_token token : always_) logits[token] = -INFINITY;
    end_logits_.clear();
    if (may_end_) return;
    for (const llama_token token : ends_) {
        end_logits_.push_back(logits[token]);
        logits[token] = -INFINITY;
    }
}

bool TokenFilter::admits(llama_token token, float* logits) {
    if (!completes_forbidden(token)) return true;
    logits[token] = -INFINITY;
    if (++refused_ == kMostRefused)
        for (llama_token other = 0; other < model_->vocabulary_size(); ++other)
            if (completes_forbidden(other)) logits[other] = -INFINITY;
    return false;
}

bool TokenFilter::release_ends(float* logits) {
    if (end_logits_.empty()) return false;
    for (std::size_t i = 0; i < ends_.size(); ++i) logits[ends_[i]] = end_logits_[i];
    end_logits_.clear();
    return true;
}

void TokenFilter::accept(llama_token token) {
    if (!watches_ || model_->ends_answer(token)) return;
    for (const char byte : piece(token)) {
        if (!forbidden_.empty()) static_cast<void>(forbidden_.feed(byte));
        if (!may_end_ && required_.feed(byte)) may_end_ = true;
    }
}

}  // namespace headrace::llm
