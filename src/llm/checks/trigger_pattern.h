#pragma once
#include <cstddef>

#include "base/result.h"
#include "llm/settings.h"

namespace headrace::llm {

/// Characters of an answer that may pass while a pattern still waits to match: std::regex, with which
/// llama.cpp looks for triggers, calls itself for each, and LargeStackThread has the stack for so many.
inline constexpr std::size_t kMostSearchedForTriggers = std::size_t{64} << 10;

inline bool is_pattern(const GrammarTrigger& trigger) {
    return trigger.type == GrammarTrigger::Type::pattern ||
           trigger.type == GrammarTrigger::Type::pattern_full;
}

/// Whether a lazy grammar may be triggered by this word or regular expression of a caller. llama.cpp makes a
/// std::regex of words, too, which calls itself for each character when it is made. With an expression it
/// tries one way to match after the other, from each place of the text on: refused is what has too many, and
/// what stopping patterns refuse, too.
Status check_trigger(const GrammarTrigger& trigger);

}  // namespace headrace::llm
