#include "llm/checks/grammar_shape.h"

#include <algorithm>
#include <optional>

namespace headrace::llm {
namespace {

/// For each rule that can match nothing: how many optional parts the longest such match skips.
class Widths {
public:
    Widths(const GrammarShape& grammar, std::uint64_t most)
        : grammar_(grammar), most_(most), widths_(grammar.rules.size()) {
        // Rules use later ones, or earlier ones: chains of either kind are done in two rounds.
        for (bool backwards = true; widen(backwards);) backwards = !backwards;
    }

    std::uint64_t longest_run() const {
        std::uint64_t longest = 0;
        for (const GrammarShape::Rule& rule : grammar_.rules)
            for (const GrammarShape::Sequence& sequence : rule.alternatives) {
                std::uint64_t run = 0;
                for (const GrammarShape::Part& part : sequence) {
                    const auto width = width_of(part);
                    run = width ? std::min(most_, run + *width) : 0;
                    longest = std::max(longest, run);
                }
            }
        return longest;
    }

private:
    /// Whether any rule was wider than known.
    bool widen(bool backwards) {
        bool changed = false;
        const std::size_t count = grammar_.rules.size();
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t rule = backwards ? count - 1 - i : i;
            for (const GrammarShape::Sequence& sequence : grammar_.rules[rule].alternatives) {
                const auto width = width_of(sequence);
                if (!width || (widths_[rule] && *widths_[rule] >= *width)) continue;
                widths_[rule] = width;
                changed = true;
            }
        }
        return changed;
    }

    std::optional<std::uint64_t> width_of(const GrammarShape::Sequence& sequence) const {
        std::uint64_t sum = 0;
        for (const GrammarShape::Part& part : sequence) {
            const auto width = width_of(part);
            if (!width) return std::nullopt;
            sum = std::min(most_, sum + *width);
        }
        return sum;
    }

    /// No number where the part cannot be left out.
    std::optional<std::uint64_t> width_of(const GrammarShape::Part& part) const {
        const auto inner = part.rule == GrammarShape::kNoRule ? std::nullopt : widths_[part.rule];
        if (inner) return std::min(most_, std::max<std::uint64_t>(1, *inner) * part.times);
        return part.is_optional ? std::optional<std::uint64_t>(1) : std::nullopt;
    }

    const GrammarShape& grammar_;
    const std::uint64_t most_;
    std::vector<std::optional<std::uint64_t>> widths_;
};

/// Counts the calls of a search from each rule. It does not recurse, because chains of rules may be long.
class BeginningsSearch {
public:
    BeginningsSearch(const GrammarShape& grammar, std::uint64_t most)
        : grammar_(grammar), most_(most), found_(grammar.rules.size()), may_vanish_(grammar.rules.size()) {
        const auto is_nothing = [](const GrammarShape::Sequence& sequence) {
            return std::ranges::all_of(sequence, &GrammarShape::Part::is_nothing);
        };
        for (std::size_t i = 0; i < found_.size(); ++i)
            may_vanish_[i] = std::ranges::any_of(grammar.rules[i].alternatives, is_nothing);
    }

    GrammarShape::Beginnings run() {
        GrammarShape::Beginnings all;
        for (std::size_t i = 0; i < found_.size(); ++i) {
            if (found_[i].state != State::unknown) continue;
            search(i, all.is_endless);
            all.calls = sum(all.calls, found_[i].calls);
        }
        for (const Found& rule : found_) {
            all.depth = std::max(all.depth, rule.depth);
            all.of_a_rule = std::max(all.of_a_rule, rule.calls);
        }
        // Each repetition has rules of its own, which begin with what it repeats.
        for (const GrammarShape::Rule& rule : grammar_.rules)
            for (const GrammarShape::Sequence& sequence : rule.alternatives)
                for (const GrammarShape::Part& part : sequence)
                    if (part.rule != GrammarShape::kNoRule && (part.is_optional || part.times > 1))
                        all.calls = sum(all.calls, std::min(most_, part.times) * found_[part.rule].calls);
        return all;
    }

private:
    enum class State : std::uint8_t { unknown, begun, done };
    struct Found {
        State state = State::unknown;
        std::uint64_t calls = 1;
        std::size_t depth = 1;
    };

    std::uint64_t sum(std::uint64_t a, std::uint64_t b) const { return std::min(most_, a + b); }

    /// Calls `use` for each part that the rule may begin with.
    template <class Use>
    void for_beginnings(std::size_t rule, Use use) const {
        for (const GrammarShape::Sequence& sequence : grammar_.rules[rule].alternatives)
            for (const GrammarShape::Part& part : sequence) {
                if (part.is_nothing) continue;
                const bool is_rule = part.rule != GrammarShape::kNoRule;
                if (is_rule) use(part);
                if (!part.is_optional && !(is_rule && may_vanish_[part.rule])) break;
            }
    }

    void search(std::size_t first, bool& is_endless) {
        std::vector<std::size_t> open{first};
        while (!open.empty()) {
            const std::size_t rule = open.back();
            if (found_[rule].state == State::unknown) {
                found_[rule].state = State::begun;
                for_beginnings(rule, [&](const GrammarShape::Part& part) {
                    is_endless |= found_[part.rule].state == State::begun;
                    if (found_[part.rule].state == State::unknown) open.push_back(part.rule);
                });
                continue;
            }
            open.pop_back();
            if (found_[rule].state == State::begun) finish(rule);
        }
    }

    void finish(std::size_t rule) {
        Found& found = found_[rule];
        for_beginnings(rule, [&](const GrammarShape::Part& part) {
            const std::uint64_t times = may_vanish_[part.rule] ? std::min(most_, part.times) : 1;
            const Found& inner = found_[part.rule];
            found.calls = sum(found.calls, times * (inner.calls + (part.is_optional ? 1 : 0)));
            found.depth = std::max(found.depth, inner.depth + (part.is_optional ? times : 0) + 1);
        });
        found.state = State::done;
    }

    const GrammarShape& grammar_;
    const std::uint64_t most_;
    std::vector<Found> found_;
    std::vector<bool> may_vanish_;  // by an alternative of nothing
};

}  // namespace

GrammarShape::Beginnings GrammarShape::beginnings(std::uint64_t most) const {
    return BeginningsSearch(*this, most).run();
}

std::uint64_t GrammarShape::optional_in_a_row(std::uint64_t most) const {
    return Widths(*this, most).longest_run();
}

}  // namespace headrace::llm
