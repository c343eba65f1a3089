#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "llm/stopping/pattern_program.h"

namespace headrace::llm {

/// Looks for regular expressions in a text that arrives character by character, as an automaton in all its
/// states at once: a character costs at most one step per state, whatever the patterns and the text are.
class PatternSearch {
public:
    /// A pattern that matches the empty text is an error: it would end every answer before it starts. Those
    /// of `later`, which come after the others, may match it: they count from the first character on.
    static Result<PatternSearch> create(const std::vector<std::string>& patterns,
                                        const std::vector<std::string>& later = {});

    /// The first pattern with a match that ends at the text's end, which only the character after it shows
    /// ($, \b).
    std::optional<std::uint32_t> ends_before(char32_t next);
    /// Takes a character; the first pattern with a match that ends with it.
    std::optional<std::uint32_t> feed(char32_t c);

private:
    void enter(std::uint32_t state, std::optional<char32_t> next);
    void start_over(std::optional<char32_t> last);
    Status add(const std::vector<std::string>& patterns, Assertion end);
    std::optional<std::uint32_t> counted() const;

    PatternProgram program_;
    std::size_t first_later_ = 0;          // of the patterns
    std::optional<char32_t> last_;         // none at the text's start
    std::vector<std::uint32_t> states_;    // of the operations one_of and assertion
    std::vector<std::uint32_t> previous_;  // kept for its memory
    std::vector<std::uint32_t> stack_;
    std::vector<std::uint64_t> entered_;  // by state: the round that entered it last
    std::uint64_t round_ = 0;
    std::optional<std::uint32_t> found_;
};

}  // namespace headrace::llm
