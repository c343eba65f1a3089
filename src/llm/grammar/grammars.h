#pragma once
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "llm/grammar/grammar_automaton.h"

namespace headrace::llm {

/// The grammars that a vocabulary's answers have had last, with what has been computed for them.
class Grammars {
public:
    explicit Grammars(const llama_vocab* vocab) : vocab_(vocab) {}

    /// The automaton of a grammar that was asked for before; else null.
    std::shared_ptr<GrammarAutomaton> find(const std::string& text);
    /// The automaton of a grammar that llama.cpp takes. Null: it has single tokens, which no automaton here
    /// knows.
    std::shared_ptr<GrammarAutomaton> automaton(const std::string& text);
    /// An empty one in the place of one that is full, unless it has been replaced already.
    std::shared_ptr<GrammarAutomaton> replace(const std::shared_ptr<GrammarAutomaton>& full);
    const llama_vocab* vocab() const { return vocab_; }

private:
    const llama_vocab* vocab_;
    std::mutex mutex_;
    std::shared_ptr<const TokenTrie> trie_;
    std::list<std::pair<std::string, std::shared_ptr<GrammarAutomaton>>> last_;  // the last first
};

/// Where an answer is in its grammar.
class GrammarPlace {
public:
    GrammarPlace(Grammars& grammars, std::shared_ptr<GrammarAutomaton> automaton)
        : grammars_(&grammars), automaton_(std::move(automaton)), place_(automaton_->start()) {}

    bool admits(llama_token token) const { return place_after(token).has_value(); }
    /// False, and nothing is changed, where it may not come next.
    bool accept(llama_token token);
    /// Takes from all tokens that may not come next their logits.
    void mask(float* logits) const;

private:
    std::optional<GrammarAutomaton::Place> place_after(llama_token token) const;

    Grammars* grammars_;
    std::shared_ptr<GrammarAutomaton> automaton_;
    GrammarAutomaton::Place place_;
};

}  // namespace headrace::llm
