#include "llm/checks/grammar_shape.h"

#include <algorithm>
#include <optional>

namespace headrace::llm {
namespace {

/// Of each rule that may be empty: how many optional parts its longest way to be that has.
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

    /// None of a part that cannot be left out.
    std::optional<std::uint64_t> width_of(const GrammarShape::Part& part) const {
        const auto inner = part.rule == GrammarShape::kNoRule ? std::nullopt : widths_[part.rule];
        if (inner) return std::min(most_, std::max<std::uint64_t>(1, *inner) * part.times);
        return part.is_optional ? std::optional<std::uint64_t>(1) : std::nullopt;
    }

    const GrammarShape& grammar_;
    const std::uint64_t most_;
    std::vector<std::optional<std::uint64_t>> widths_;
};

}  // namespace

std::uint64_t GrammarShape::optional_in_a_row(std::uint64_t most) const {
    return Widths(*this, most).longest_run();
}

}  // namespace headrace::llm
