#include "llm/engine/prompt_budget.h"

#include <algorithm>
#include <iterator>

namespace headrace::llm {
namespace {

constexpr double kWeight = 0.2;  // of the latest step in an average
constexpr int kLeastSize = 16, kLeastPrompt = 8;
constexpr double kFullSize = 0.9;      // of a size's tokens: a step with less says nothing of it
constexpr double kFirstGuessMs = 2.0;  // a token
constexpr double kHope = 0.9;

double blend(double average, double value) {
    return average == 0 ? value : average + kWeight * (value - average);
}

}  // namespace

PromptBudget::PromptBudget(double target_ms, int most) : target_ms_(target_ms), most_(most) {
    for (int tokens = kLeastSize; tokens < most; tokens += std::max(kLeastSize, tokens / 64 * 32))
        sizes_.push_back({tokens});
    sizes_.push_back({most});
}

/// A size that was not seen yet takes its share of the next larger one seen, or else grows from a smaller
/// one: a hopeful guess, so that it is tried.
double PromptBudget::expected_ms(std::size_t index) const {
    const Size& size = sizes_[index];
    if (size.ms > 0) return size.ms;
    const auto seen = [](const Size& other) { return other.ms > 0; };
    const auto here = sizes_.begin() + static_cast<std::ptrdiff_t>(index);
    auto known = std::find_if(here, sizes_.end(), seen);
    if (known == sizes_.end()) {
        const auto before = std::find_if(std::make_reverse_iterator(here), sizes_.rend(), seen);
        if (before == sizes_.rend()) return kFirstGuessMs * size.tokens;
        known = before.base() - 1;
    }
    return kHope * known->ms * size.tokens / known->tokens;
}

int PromptBudget::tokens(int decoding) const {
    if (decoding == 0) return most_;
    int best = kLeastPrompt;
    double best_worth = 0;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
        const int prompt = sizes_[i].tokens - decoding;
        if (prompt < kLeastPrompt) continue;
        const double ms = expected_ms(i);
        const double late = std::max(1.0, ms / target_ms_);
        const double worth = prompt / ms / (late * late);
        if (worth < best_worth) continue;
        best = prompt;
        best_worth = worth;
    }
    return best;
}

void PromptBudget::observe(int decoding, int prompt, double ms) {
    if (prompt == 0) return;
    const int tokens = decoding + prompt;
    const auto size = std::find_if(sizes_.begin(), sizes_.end(),
                                   [&](const Size& candidate) { return tokens <= candidate.tokens; });
    if (size == sizes_.end() || tokens < kFullSize * size->tokens) return;
    const double before = size->ms;
    size->ms = blend(before, ms);
    if (before == 0) return;
    for (Size& other : sizes_)
        if (&other != &*size) other.ms *= size->ms / before;
}

}  // namespace headrace::llm
