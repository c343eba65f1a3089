#pragma once
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "llm/model/model.h"
#include "llm/settings.h"
#include "llm/stopping/stop_strings.h"

namespace headrace::llm {

/// Tokens that may not come next, kept away by their logits: those that are banned for good, those that would
/// complete a forbidden text, whatever tokens its beginning came from, and, until a required text is in the
/// answer, the ends of answers.
class TokenFilter {
public:
    /// shown: special tokens whose text is part of the answer. The model must outlive the filter. Errors: too
    /// many or too long texts, no UTF-8.
    static Result<TokenFilter> create(const Model& model, const RequestSettings& settings,
                                      std::set<llama_token> shown);

    void ban(llama_token token) { always_.push_back(token); }
    bool is_idle() const { return always_.empty() && !watches_; }

    /// Sets the logits of the next token of what is known beforehand to minus infinity.
    void mask(float* logits);
    /// Whether a chosen token may come next. If not, its logit is minus infinity then, as are those of others
    /// that may not, when many were refused.
    bool admits(llama_token token, float* logits);
    /// When nothing else is left: gives the ends of the answer their logits back, if they were kept away.
    bool release_ends(float* logits);
    /// The token that was taken.
    void accept(llama_token token);

private:
    TokenFilter(const Model& model, StopStrings forbidden, StopStrings required)
        : model_(&model), forbidden_(std::move(forbidden)), required_(std::move(required)) {}
    std::string piece(llama_token token) const;
    bool completes_forbidden(llama_token token) const;
    void find_tokens();

    const Model* model_;
    StopStrings forbidden_, required_;
    std::set<llama_token> shown_;
    bool shows_special_ = false;
    bool watches_ = false;  // the answer's text
    bool may_end_ = true;
    std::vector<llama_token> always_;
    std::vector<llama_token> ends_;
    std::vector<float> end_logits_;  // those that mask took away; empty: none
    int refused_ = 0;                // of the next token
};

}  // namespace headrace::llm
