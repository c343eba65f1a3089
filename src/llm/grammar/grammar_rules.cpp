#include "llm/grammar/grammar_rules.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string>

namespace headrace::llm {
namespace {

using Element = GrammarRules::Element;
using Sequence = std::vector<Element>;
using Rule = std::vector<Sequence>;

constexpr std::uint64_t kEndless = UINT64_MAX;
constexpr std::uint64_t kMostTimes = 2000;  // llama.cpp takes a larger maximum for none

bool is_of_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
}

class RulesReader {
public:
    explicit RulesReader(std::string_view source) : source_(source) {}

    std::optional<GrammarRules> run() {
        skip_space(true);
        while (at_ < source_.size() && !has_tokens_) read_rule();
        if (has_tokens_) return std::nullopt;
        return flat();
    }

private:
    char here(std::size_t ahead = 0) const {
        return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
    }

    void skip_space(bool newlines) {
        for (;; ++at_) {
            if (here() == '#') at_ = std::min(source_.size(), source_.find_first_of("\r\n", at_));
            const char c = here();
            if (c != ' ' && c != '\t' && !(newlines && (c == '\r' || c == '\n'))) return;
        }
    }

    std::string_view read_name() {
        const std::size_t start = at_;
        while (is_of_name(here())) ++at_;
        return source_.substr(start, at_ - start);
    }

    std::uint32_t rule_of(std::string_view name) {
        const auto [found, is_new] = names_.emplace(name, static_cast<std::uint32_t>(rules_.size()));
        if (is_new) rules_.emplace_back();
        return found->second;
    }

    std::uint32_t add_rule(Rule rule) {
        rules_.push_back(std::move(rule));
        return static_cast<std::uint32_t>(rules_.size() - 1);
    }

    void read_rule() {
        const std::uint32_t rule = rule_of(read_name());
        skip_space(false);
        at_ += 3;  // ::=
        skip_space(true);
        Rule read = read_alternatives(false);
        rules_[rule] = std::move(read);  // of two definitions the last one counts
        skip_space(true);
    }

    Rule read_alternatives(bool nested) {
        Rule rule;
        for (;;) {
            rule.push_back(read_sequence(nested));
            if (here() != '|' || has_tokens_) return rule;
            ++at_;
            skip_space(true);
        }
    }

    Sequence read_sequence(bool nested) {
        Sequence sequence;
        std::size_t last = 0;  // where the item begins that a repetition would repeat
        while (!has_tokens_) {
            if (here() == '*' || here() == '+' || here() == '?' || here() == '{') {
                const auto [least, most] = read_times(nested);
                repeat(sequence, last, least, most);
            } else {
                const std::size_t start = sequence.size();
                if (!read_item(sequence)) break;
                last = start;
            }
            skip_space(nested);
        }
        return sequence;
    }

    /// False where the sequence ends.
    bool read_item(Sequence& sequence) {
        const char c = here();
        if (c == '"') {
            for (++at_; here() != '"';) {
                const std::uint32_t character = read_character();
                sequence.push_back(characters({.ranges = {{character, character}}}));
            }
            ++at_;
        } else if (c == '[') {
            ++at_;
            read_class(sequence);
        } else if (c == '.') {
            ++at_;
            sequence.push_back(characters({.ranges = {{0, UINT32_MAX}}}));
        } else if (c == '(') {
            ++at_;
            skip_space(true);
            sequence.push_back({Element::Kind::rule, add_rule(read_alternatives(true))});
            ++at_;
        } else if (is_of_name(c)) {
            sequence.push_back({Element::Kind::rule, rule_of(read_name())});
        } else {
            has_tokens_ = c == '<' || c == '!';
            return false;
        }
        return true;
    }

    /// An empty one stands for the empty text, as llama.cpp has it.
    void read_class(Sequence& sequence) {
        CharacterRanges read;
        if (here() == '^') {
            read.is_negated = true;
            ++at_;
        }
        while (here() != ']') {
            const std::uint32_t first = read_character();
            std::uint32_t last = first;
            if (here() == '-' && here(1) != ']') {
                ++at_;
                last = read_character();
            }
            read.ranges.push_back({first, last});
        }
        ++at_;
        if (!read.ranges.empty()) sequence.push_back(characters(std::move(read)));
    }

    std::uint32_t read_hex(std::size_t digits) {
        std::uint32_t value = 0;
        std::from_chars(source_.data() + at_, source_.data() + std::min(source_.size(), at_ + digits), value,
                        16);
        at_ += digits;
        return value;
    }

    std::uint32_t read_character() {
        if (at_ >= source_.size()) return 0;
        if (here() == '\\') {
            const char escaped = here(1);
            at_ += 2;
            switch (escaped) {
                case 'x': return read_hex(2);
                case 'u': return read_hex(4);
                case 'U': return read_hex(8);
                case 't': return '\t';
                case 'r': return '\r';
                case 'n': return '\n';
                default: return static_cast<unsigned char>(escaped);
            }
        }
        const auto byte = static_cast<unsigned char>(source_[at_++]);
        const int length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
        std::uint32_t value = byte & ((1u << (8 - length)) - 1);
        for (int i = 1; i < length && here() != '\0'; ++i)
            value = (value << 6) + (static_cast<unsigned char>(source_[at_++]) & 0x3F);
        return value;
    }

    std::uint64_t read_number() {
        std::uint64_t value = 0;
        const auto read = std::from_chars(source_.data() + at_, source_.data() + source_.size(), value);
        at_ = static_cast<std::size_t>(read.ptr - source_.data());
        return value;
    }

    std::pair<std::uint64_t, std::uint64_t> read_times(bool nested) {
        const char sign = source_[at_++];
        if (sign == '*') return {0, kEndless};
        if (sign == '+') return {1, kEndless};
        if (sign == '?') return {0, 1};
        skip_space(nested);
        const std::uint64_t least = read_number();
        std::uint64_t most = least;
        skip_space(nested);
        if (here() == ',') {
            ++at_;
            skip_space(nested);
            most = here() == '}' ? kEndless : read_number();
            if (most > kMostTimes) most = kEndless;
            skip_space(nested);
        }
        ++at_;  // }
        return {least, most};
    }

    /// x{2,4} becomes x x r, r ::= x s | and s ::= x |. x{2,} becomes x x r, r ::= x r |.
    void repeat(Sequence& sequence, std::size_t from, std::uint64_t least, std::uint64_t most) {
        const Sequence item(sequence.begin() + static_cast<std::ptrdiff_t>(from), sequence.end());
        if (least == 0) sequence.resize(from);
        for (std::uint64_t i = 1; i < least; ++i) sequence.insert(sequence.end(), item.begin(), item.end());
        if (most == least) return;
        std::uint32_t rest = 0;
        for (std::uint64_t i = 0; i < (most == kEndless ? 1 : most - least); ++i) {
            const std::uint32_t rule = add_rule({});
            Sequence once = item;
            if (most == kEndless || i > 0)
                once.push_back({Element::Kind::rule, most == kEndless ? rule : rest});
            rules_[rule] = {std::move(once), {}};
            rest = rule;
        }
        sequence.push_back({Element::Kind::rule, rest});
    }

    Element characters(CharacterRanges ranges) {
        characters_.push_back(std::move(ranges));
        return {Element::Kind::characters, static_cast<std::uint32_t>(characters_.size() - 1)};
    }

    GrammarRules flat() {
        GrammarRules rules;
        for (const Rule& rule : rules_) {
            std::vector<std::uint32_t>& starts = rules.alternatives.emplace_back();
            for (const Sequence& sequence : rule) {
                starts.push_back(static_cast<std::uint32_t>(rules.elements.size()));
                rules.elements.insert(rules.elements.end(), sequence.begin(), sequence.end());
                rules.elements.push_back({Element::Kind::end});
            }
        }
        rules.characters = std::move(characters_);
        rules.root = rule_of("root");
        return rules;
    }

    std::string_view source_;
    std::size_t at_ = 0;
    bool has_tokens_ = false;
    std::map<std::string_view, std::uint32_t> names_;
    std::vector<Rule> rules_;
    std::vector<CharacterRanges> characters_;
};

}  // namespace

bool CharacterRanges::contains(std::uint32_t character) const {
    const bool found = std::any_of(ranges.begin(), ranges.end(), [&](const Range& range) {
        return range.first <= character && character <= range.last;
    });
    return found != is_negated;
}

bool CharacterRanges::may_become_one(PartialCharacter begun) const {
    if (begun.missing == 1 && begun.value < 2) return false;  // a longer way to write seven bits
    const int bits = begun.missing * 6;
    std::uint32_t low = begun.value << bits;
    const std::uint32_t high = low | ((1u << bits) - 1);
    if (low == 0 && begun.missing == 2) low = 1u << 11;
    if (low == 0 && begun.missing == 3) low = 1u << 16;
    const bool found = std::any_of(ranges.begin(), ranges.end(), [&](const Range& range) {
        return range.first <= high && low <= range.last;
    });
    return found != is_negated;
}

std::optional<GrammarRules> read_grammar_rules(std::string_view source) { return RulesReader(source).run(); }

}  // namespace headrace::llm
