#include "llm/grammar/grammars.h"

#include <algorithm>
#include <cmath>

namespace headrace::llm {
namespace {

constexpr std::size_t kMostGrammars = 32;

}  // namespace

std::shared_ptr<GrammarAutomaton> Grammars::find(const std::string& text) {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(last_.begin(), last_.end(), [&](const auto& entry) { return entry.first == text; });
    if (found == last_.end()) return nullptr;
    last_.splice(last_.begin(), last_, found);
    return last_.front().second;
}

std::shared_ptr<GrammarAutomaton> Grammars::automaton(const std::string& text) {
    if (std::shared_ptr<GrammarAutomaton> known = find(text))
        return known->is_full() ? replace(known) : known;
    std::optional<GrammarRules> rules = read_grammar_rules(text);
    if (!rules) return nullptr;
    const std::lock_guard lock(mutex_);
    if (!trie_) trie_ = std::make_shared<const TokenTrie>(vocab_);
    last_.emplace_front(text, std::make_shared<GrammarAutomaton>(
                                  std::make_shared<const GrammarRules>(std::move(*rules)), trie_));
    if (last_.size() > kMostGrammars) last_.pop_back();
    return last_.front().second;
}

std::shared_ptr<GrammarAutomaton> Grammars::replace(const std::shared_ptr<GrammarAutomaton>& full) {
    const std::lock_guard lock(mutex_);
    for (auto& [text, automaton] : last_) {
        if (automaton->rules() != full->rules()) continue;
        if (automaton == full) automaton = std::make_shared<GrammarAutomaton>(full->rules(), trie_);
        return automaton;
    }
    return std::make_shared<GrammarAutomaton>(full->rules(), trie_);
}

std::optional<GrammarAutomaton::Place> GrammarPlace::place_after(llama_token token) const {
    if (llama_vocab_is_eog(grammars_->vocab(), token))
        return place_.begun.missing == 0 && place_.state->may_end() ? std::optional(place_) : std::nullopt;
    const std::string text = token_text(grammars_->vocab(), token);
    return text.empty() ? std::nullopt : automaton_->after(place_, text);
}

bool GrammarPlace::accept(llama_token token) {
    const std::optional<GrammarAutomaton::Place> next = place_after(token);
    if (!next) return false;
    place_ = *next;
    if (!automaton_->is_full()) return true;
    std::shared_ptr<GrammarAutomaton> fresh = grammars_->replace(automaton_);
    place_ = fresh->take_over(*automaton_, place_);
    automaton_ = std::move(fresh);
    return true;
}

void GrammarPlace::mask(float* logits) const {
    const std::shared_ptr<const TokenMask> allowed = automaton_->allowed(place_);
    const std::size_t size = static_cast<std::size_t>(llama_vocab_n_tokens(grammars_->vocab()));
    for (std::size_t word = 0; word < allowed->size(); ++word) {
        const std::uint64_t bits = (*allowed)[word];
        if (bits == UINT64_MAX) continue;
        const std::size_t first = word * 64, end = std::min(size, first + 64);
        if (bits == 0)
            std::fill(logits + first, logits + end, -INFINITY);
        else
            for (std::size_t i = first; i < end; ++i)
                if (((bits >> (i - first)) & 1) == 0) logits[i] = -INFINITY;
    }
}

}  // namespace headrace::llm
