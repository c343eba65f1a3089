#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace headrace::llm {

/// What of a grammar's rules may be left out.
struct GrammarShape {
    static constexpr std::size_t kNoRule = SIZE_MAX;

    struct Part {
        std::size_t rule = kNoRule;  ///< that it stands for; characters have none
        std::uint64_t times = 1;     ///< it is written out
        bool is_optional = false;    ///< by its repetition
    };
    using Sequence = std::vector<Part>;
    struct Rule {
        std::vector<Sequence> alternatives;
    };
    std::vector<Rule> rules;

    /// The most parts in a row that may all be left out, counted through rules; `most` where it is as many or
    /// more. llama.cpp follows each way to leave some out: its time grows with the third power.
    std::uint64_t optional_in_a_row(std::uint64_t most) const;
};

}  // namespace headrace::llm
