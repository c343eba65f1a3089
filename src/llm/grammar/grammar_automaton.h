#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "llm/grammar/grammar_rules.h"
#include "llm/grammar/token_trie.h"

namespace headrace::llm {

/// A bit for each token of a vocabulary.
using TokenMask = std::vector<std::uint64_t>;

/// A grammar as states with transitions by characters, and with the tokens that may come next. Both are
/// computed when they are first needed, and kept for all answers under the grammar. Threads may share it.
class GrammarAutomaton {
public:
    GrammarAutomaton(std::shared_ptr<const GrammarRules> rules, std::shared_ptr<const TokenTrie> trie);

    /// A state is the set of all stacks of elements still to come, each at characters, or empty: an end.
    struct State {
        std::vector<std::uint32_t> stacks;  ///< ascending numbers of nodes
        std::vector<State*> next;           ///< by class of characters, null: not yet known; empty: none is
        std::shared_ptr<const TokenMask> allowed;

        bool may_end() const { return !stacks.empty() && stacks.front() == 0; }
    };
    struct Place {
        State* state;
        PartialCharacter begun = {};  ///< its first bytes have been taken
    };

    Place start() const { return {start_}; }
    /// Behind a text; nothing where the grammar refuses it. This and `allowed` throw std::length_error where
    /// a grammar has a state of its own behind nearly every text, and so takes too much memory.
    std::optional<Place> after(Place place, std::string_view text);
    /// All tokens that may come next.
    std::shared_ptr<const TokenMask> allowed(Place place);
    /// Whether it has taken so much memory that a new one should be made: then take_over places there.
    bool is_full() const;
    Place take_over(const GrammarAutomaton& from, Place place);
    const std::shared_ptr<const GrammarRules>& rules() const { return rules_; }

private:
    /// A stack: its topmost element, and the stack below; node 0 is the empty one.
    struct Node {
        std::uint32_t element, below;
    };
    struct HashStacks {
        std::size_t operator()(const std::vector<std::uint32_t>& stacks) const;
    };

    void find_classes();
    std::size_t class_of(std::uint32_t character) const;
    std::uint32_t node(std::uint32_t element, std::uint32_t below);
    /// The stack that is left when the topmost element is done.
    std::uint32_t behind(std::uint32_t stack);
    State* closure(std::vector<std::uint32_t> stacks);
    State* step(State& state, std::size_t character_class);
    State* next(State& state, std::size_t character_class) {
        State* known = state.next.empty() ? nullptr : state.next[character_class];
        return known != nullptr ? known : step(state, character_class);
    }
    bool is_dead(const State* state) const { return state->stacks.empty(); }
    bool may_become_one(const State& state, PartialCharacter begun) const;
    bool take_byte(Place& place, std::uint8_t byte, bool is_continued);
    TokenMask walk(Place place);

    std::shared_ptr<const GrammarRules> rules_;
    std::shared_ptr<const TokenTrie> trie_;
    std::vector<std::uint32_t> class_starts_;  // the first character of each class but the first, ascending
    std::vector<std::vector<bool>> class_is_in_;  // by ranges, by class
    std::vector<std::uint16_t> ascii_classes_;

    mutable std::mutex mutex_;
    std::vector<Node> nodes_;
    std::unordered_map<std::uint64_t, std::uint32_t> known_nodes_;
    std::unordered_map<std::vector<std::uint32_t>, std::unique_ptr<State>, HashStacks> states_;
    std::size_t bytes_ = 0;
    State* start_;
};

}  // namespace headrace::llm
