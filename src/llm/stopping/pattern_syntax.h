#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "llm/stopping/pattern_program.h"

namespace headrace::llm {

/// A regular expression as a tree. Children come before their parents; the last node is the root.
struct PatternSyntax {
    enum class Kind { one_of, assertion, sequence, alternatives, repeat };
    static constexpr std::uint32_t kUnbounded = UINT32_MAX;
    struct Node {
        Kind kind = Kind::sequence;
        CharacterSet set;
        Assertion assertion{};
        std::vector<std::uint32_t> children;
        std::uint32_t min = 0, max = 0;  ///< of repeat
    };
    std::vector<Node> nodes;
};

/// What \s matches.
const CharacterSet& blanks();

/// The pattern is valid UTF-8. Errors name the character at which it is wrong, and why.
Result<PatternSyntax> parse_pattern(std::string_view pattern);

}  // namespace headrace::llm
