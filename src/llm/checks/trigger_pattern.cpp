#include "llm/checks/trigger_pattern.h"

#include <algorithm>

#include "base/utf8.h"
#include "llm/stopping/pattern_syntax.h"

namespace headrace::llm {
namespace {

using Kind = PatternSyntax::Kind;

/// How std::regex may go about a pattern: the ways to match at one place of a text.
class Ways {
public:
    Ways(const PatternSyntax& syntax, bool is_anchored) : syntax_(syntax), is_anchored_(is_anchored) {}

    /// is_last: nothing behind can fail, and so make it try again.
    Result<std::uint64_t> of(std::uint32_t index, bool is_last) {
        const PatternSyntax::Node& node = syntax_.nodes[index];
        if (node.kind == Kind::repeat) return repeated(node, is_last);
        std::uint64_t ways = node.kind == Kind::alternatives ? 0 : 1;
        for (std::size_t i = 0; i < node.children.size(); ++i) {
            const bool ends = is_last && (node.kind == Kind::alternatives || i + 1 == node.children.size());
            HR_ASSIGN(const std::uint64_t child, of(node.children[i], ends));
            ways = std::min(node.kind == Kind::alternatives ? ways + child : ways * child, kMany);
        }
        return ways;
    }

private:
    static constexpr std::uint64_t kMany = std::uint64_t{1} << 31;

    Result<std::uint64_t> repeated(const PatternSyntax::Node& node, bool is_last) {
        HR_ASSIGN(const std::uint64_t once, of(node.children.front(), false));
        if (node.max == PatternSyntax::kUnbounded) {
            if (once > 1)
                return invalid(
                    "it repeats without a bound what can match in several ways; write sets, as in [ab]*");
            if (++unbounded_ > 1 || !(is_last || is_anchored_))
                return invalid(
                    "it repeats something without a bound; only one such repetition may be there, at the end "
                    "or "
                    "in a pattern that begins with ^. Bound the others, as in {{0,64}}");
            return 1;
        }
        std::uint64_t ways = 0, power = 1;
        for (std::uint32_t i = 0; i <= node.max; ++i, power = std::min(power * once, kMany))
            if (i >= node.min) ways = std::min(ways + power, kMany);
        return ways;
    }

    const PatternSyntax& syntax_;
    const bool is_anchored_;
    int unbounded_ = 0;
};

bool begins_at_start(const PatternSyntax& syntax) {
    const PatternSyntax::Node* node = &syntax.nodes.back();
    while (node->kind == Kind::sequence && !node->children.empty())
        node = &syntax.nodes[node->children.front()];
    return node->kind == Kind::assertion && node->assertion == Assertion::line_start;
}

}  // namespace

Status check_trigger(const GrammarTrigger& trigger) {
    constexpr std::uint64_t kMostWays = 256;
    const std::string& pattern = trigger.value;
    if (pattern.size() > PatternProgram::kMaxPatternBytes)
        return invalid("it has {} bytes, and {} are allowed", pattern.size(),
                       PatternProgram::kMaxPatternBytes);
    if (!is_pattern(trigger)) return success();
    if (const auto at = find_invalid_utf8(pattern))
        return invalid("it is not valid UTF-8 from byte {} on", *at);
    HR_ASSIGN(const PatternSyntax syntax, parse_pattern(pattern));
    const bool whole = trigger.type == GrammarTrigger::Type::pattern_full;
    Ways ways(syntax, whole || begins_at_start(syntax));
    const auto root = static_cast<std::uint32_t>(syntax.nodes.size() - 1);
    HR_ASSIGN(const std::uint64_t all, ways.of(root, !whole));
    if (all > kMostWays)
        return invalid(
            "its repetitions and alternatives can match in more than {} ways; use fewer, or fixed numbers",
            kMostWays);
    return success();
}

}  // namespace headrace::llm
