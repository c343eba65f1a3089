#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace headrace::llm {

/// What of a grammar's rules may be left out, and which rules begin with others.
struct GrammarShape {
    static constexpr std::size_t kNoRule = SIZE_MAX;

    struct Part {
        std::size_t rule = kNoRule;  ///< that it stands for; characters have none
        std::uint64_t times = 1;     ///< it is written out
        bool is_optional = false;    ///< by its repetition
        bool is_nothing = false;     ///< "" or x{0}, of which llama.cpp keeps nothing
    };
    using Sequence = std::vector<Part>;
    struct Rule {
        std::vector<Sequence> alternatives;
    };
    std::vector<Rule> rules;

    /// The most parts in a row that may all be left out, counted through rules; `most` where it is as many or
    /// more. llama.cpp follows each way to leave some out: its time grows with the third power.
    std::uint64_t optional_in_a_row(std::uint64_t most) const;

    /// How llama.cpp looks for a rule that begins with itself: it follows each way from a rule to one that it
    /// begins with, by a call each, and remembers none.
    struct Beginnings {
        std::uint64_t calls = 0;      ///< in all; `most` where there are as many or more
        std::uint64_t of_a_rule = 0;  ///< the most of one, as many as ways to begin with it
        std::size_t depth = 0;        ///< calls inside of each other
        bool is_endless = false;      ///< a rule does begin with itself
    };
    Beginnings beginnings(std::uint64_t most) const;
};

}  // namespace headrace::llm
