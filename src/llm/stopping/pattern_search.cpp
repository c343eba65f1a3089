#include "llm/stopping/pattern_search.h"

#include <algorithm>

#include "base/utf8.h"
#include "llm/stopping/pattern_syntax.h"

namespace headrace::llm {
namespace {

using Op = PatternProgram::Op;

bool is_line_end(char32_t c) { return c == '\n' || c == '\r' || c == 0x2028 || c == 0x2029; }

bool is_word(std::optional<char32_t> c) {
    return c && (*c == '_' || (*c >= '0' && *c <= '9') || ((*c | 0x20) >= 'a' && (*c | 0x20) <= 'z'));
}

/// Whether the assertion holds between two characters; none: what follows is not known yet.
std::optional<bool> holds(Assertion assertion, std::optional<char32_t> last, std::optional<char32_t> next) {
    if (assertion == Assertion::line_start) return !last || is_line_end(*last);
    if (assertion == Assertion::shown_end && last && !blanks().contains(*last)) return true;
    if (!next) return std::nullopt;
    if (assertion == Assertion::line_end || assertion == Assertion::shown_end) return is_line_end(*next);
    return (is_word(last) != is_word(next)) == (assertion == Assertion::word_boundary);
}

}  // namespace

Result<PatternSearch> PatternSearch::create(const std::vector<std::string>& patterns,
                                            const std::vector<std::string>& later) {
    PatternSearch search;
    search.first_later_ = SIZE_MAX;
    HR_TRY(search.add(patterns, Assertion::line_end));
    search.first_later_ = search.program_.starts.size();
    HR_TRY(search.add(later, Assertion::shown_end));
    return search;
}

Status PatternSearch::add(const std::vector<std::string>& patterns, Assertion end) {
    for (std::size_t i = 0; i < patterns.size(); ++i) {
        const std::string& pattern = patterns[i];
        if (pattern.empty()) continue;
        if (const auto at = find_invalid_utf8(pattern))
            return invalid("stop pattern {} is not valid UTF-8 from byte {} on", i, *at);
        // Only as much of a pattern is quoted as helps to tell it from others.
        const auto where = [&] { return fmt::format("stop pattern \"{:.60}\"", pattern); };
        if (const Status added = program_.add(pattern, end); !added) return added.error().within(where());
        entered_.assign(program_.states.size(), 0);
        start_over(std::nullopt);
        if (counted())
            return invalid("{}: it matches the empty text, and would end every answer at once", where());
    }
    return success();
}

/// The first pattern that was found, unless that one does not count yet.
std::optional<std::uint32_t> PatternSearch::counted() const {
    const bool counts = found_ && (last_ || *found_ < first_later_);
    return counts ? found_ : std::nullopt;
}

/// Adds a state and those that can be reached from it without a character.
void PatternSearch::enter(std::uint32_t state, std::optional<char32_t> next) {
    stack_.push_back(state);
    while (!stack_.empty()) {
        const std::uint32_t at = stack_.back();
        stack_.pop_back();
        if (entered_[at] == round_) continue;
        entered_[at] = round_;
        const auto& [op, x, y] = program_.states[at];
        switch (op) {
            case Op::one_of: states_.push_back(at); break;
            case Op::either:
                stack_.push_back(x);
                stack_.push_back(y);
                break;
            case Op::jump: stack_.push_back(x); break;
            case Op::assertion:
                if (const auto result = holds(static_cast<Assertion>(x), last_, next); !result)
                    states_.push_back(at);
                else if (*result)
                    stack_.push_back(at + 1);
                break;
            case Op::match: found_ = std::min(found_.value_or(x), x); break;
        }
    }
}

/// A new round of states: a match may start after this character.
void PatternSearch::start_over(std::optional<char32_t> last) {
    last_ = last;
    ++round_;
    std::swap(states_, previous_);
    states_.clear();
    found_.reset();
    for (const std::uint32_t start : program_.starts) enter(start, std::nullopt);
}

std::optional<std::uint32_t> PatternSearch::ends_before(char32_t next) {
    for (std::size_t i = 0; i < states_.size(); ++i) {
        const auto& [op, x, y] = program_.states[states_[i]];
        if (op == Op::assertion && holds(static_cast<Assertion>(x), last_, next) == true)
            enter(states_[i] + 1, next);
    }
    return counted();
}

std::optional<std::uint32_t> PatternSearch::feed(char32_t c) {
    start_over(c);
    for (const std::uint32_t state : previous_) {
        const auto& [op, x, y] = program_.states[state];
        if (op == Op::one_of && program_.sets[x].contains(c)) enter(state + 1, std::nullopt);
    }
    return found_;
}

}  // namespace headrace::llm
