#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace headrace::llm {

/// A character whose last bytes are still to come, as llama.cpp reads UTF-8: what is not UTF-8, too.
struct PartialCharacter {
    std::uint32_t value = 0;
    int missing = 0;  ///< bytes
};

/// Characters that may stand at a place of a grammar.
struct CharacterRanges {
    struct Range {
        std::uint32_t first, last;
    };
    std::vector<Range> ranges;
    bool is_negated = false;

    bool contains(std::uint32_t character) const;
    /// Whether it may become one of them. As llama.cpp has it, what may become an excluded one may not.
    bool may_become_one(PartialCharacter begun) const;
};

/// A grammar in GBNF as rules without repetitions, which have become rules of their own.
struct GrammarRules {
    struct Element {
        enum class Kind : std::uint8_t { characters, rule, end } kind;
        std::uint32_t value = 0;  ///< which ranges, or which rule
    };
    std::vector<Element> elements;                         ///< all alternatives, an end behind each
    std::vector<std::vector<std::uint32_t>> alternatives;  ///< of each rule, where they begin in elements
    std::vector<CharacterRanges> characters;
    std::uint32_t root = 0;

    bool is_end(std::uint32_t element) const { return elements[element].kind == Element::Kind::end; }
};

/// The rules of a text that check_grammar has passed. None for a grammar with tokens of a vocabulary
/// (`<[5]>`).
std::optional<GrammarRules> read_grammar_rules(std::string_view source);

}  // namespace headrace::llm
