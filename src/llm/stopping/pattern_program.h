#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "llm/stopping/character_set.h"

namespace headrace::llm {

enum class Assertion : std::uint32_t {
    line_start,
    line_end,
    shown_end,  ///< a line's end, or that of the text so far where its last character is no blank
    word_boundary,
    no_word_boundary,
};

/// Regular expressions as one nondeterministic automaton over code points.
struct PatternProgram {
    static constexpr std::size_t kMaxPatterns = 64;
    static constexpr std::size_t kMaxPatternBytes = 2000;
    static constexpr std::size_t kMaxStates = 2048;  ///< of all patterns together
    static constexpr std::size_t kMaxRepeats = 1000;
    static constexpr std::size_t kMaxNesting = 50;

    enum class Op : std::uint8_t {
        one_of,     ///< a character of sets[x], then the next state
        either,     ///< states x and y, without a character
        jump,       ///< state x
        assertion,  ///< Assertion x holds here, then the next state
        match,      ///< of pattern x
    };
    struct State {
        Op op;
        std::uint32_t x = 0, y = 0;
    };
    std::vector<State> states;
    std::vector<CharacterSet> sets;
    std::vector<std::uint32_t> starts;  ///< a state per pattern

    /// Adds an ECMAScript regular expression in valid UTF-8; ^ and $ are those of a line. Without back
    /// references, look-ahead, look-behind and properties (\p), which no automaton of a bounded size can
    /// follow. end: what $ is, line_end or shown_end.
    Status add(std::string_view pattern, Assertion end = Assertion::line_end);
};

}  // namespace headrace::llm
