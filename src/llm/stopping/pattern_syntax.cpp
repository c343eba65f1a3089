#include "llm/stopping/pattern_syntax.h"

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "base/utf8.h"

namespace headrace::llm {
namespace {

using Kind = PatternSyntax::Kind;
using Node = PatternSyntax::Node;
using Range = CharacterSet::Range;
using Ranges = std::vector<Range>;

const Ranges kDigits = {{'0', '9'}};
const Ranges kWord = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const Ranges kSpace = {{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680},
                       {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
                       {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
const Ranges kLineEnds = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

bool is_digit(char32_t c) { return c >= '0' && c <= '9'; }
bool is_letter(char32_t c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }

class Parser {
public:
    explicit Parser(std::u32string text) : text_(std::move(text)) {}

    Result<PatternSyntax> parse() {
        HR_TRY(alternatives(0));
        if (!at_end()) return wrong("no group is open here: write \\) for the character");
        return std::move(syntax_);
    }

private:
    bool at_end() const { return at_ == text_.size(); }
    char32_t peek() const { return at_end() ? 0 : text_[at_]; }
    bool take(char32_t c) {
        if (at_end() || text_[at_] != c) return false;
        ++at_;
        return true;
    }
    Error wrong(std::string_view why) const { return invalid("at character {}: {}", at_, why); }

    std::uint32_t add(Node node) {
        syntax_.nodes.push_back(std::move(node));
        return static_cast<std::uint32_t>(syntax_.nodes.size() - 1);
    }
    std::uint32_t add_set(Ranges ranges) {
        return add({.kind = Kind::one_of, .set = CharacterSet(std::move(ranges))});
    }

    Result<std::uint32_t> alternatives(std::size_t depth) {
        if (depth > PatternProgram::kMaxNesting)
            return wrong(fmt::format("groups are nested more than {} deep", PatternProgram::kMaxNesting));
        std::vector<std::uint32_t> children;
        do {
            HR_ASSIGN(const std::uint32_t child, sequence(depth));
            children.push_back(child);
        } while (take('|'));
        if (children.size() == 1) return children[0];
        return add({.kind = Kind::alternatives, .children = std::move(children)});
    }

    Result<std::uint32_t> sequence(std::size_t depth) {
        std::vector<std::uint32_t> children;
        while (!at_end() && peek() != '|' && peek() != ')') {
            const std::size_t start = at_;
            HR_ASSIGN(const std::uint32_t atom, this->atom(depth));
            HR_ASSIGN(const std::uint32_t child, repeated(atom, start));
            children.push_back(child);
        }
        return add({.kind = Kind::sequence, .children = std::move(children)});
    }

    Result<std::uint32_t> atom(std::size_t depth) {
        const char32_t c = text_[at_++];
        switch (c) {
            case '.': return add({.kind = Kind::one_of, .set = CharacterSet(kLineEnds).complement()});
            case '^': return add({.kind = Kind::assertion, .assertion = Assertion::line_start});
            case '$': return add({.kind = Kind::assertion, .assertion = Assertion::line_end});
            case '(': return group(depth);
            case '[': return bracket();
            case '\\': return escape();
            case '*':
            case '+':
            case '?':
                --at_;
                return wrong("there is nothing to repeat: write \\*, \\+ or \\? for the character");
            default: return add_set({{c, c}});
        }
    }

    Result<std::uint32_t> group(std::size_t depth) {
        if (take('?')) {
            const bool is_behind =
                peek() == '<' && at_ + 1 < text_.size() && (text_[at_ + 1] == '=' || text_[at_ + 1] == '!');
            if (peek() == '=' || peek() == '!' || is_behind)
                return wrong("look-ahead and look-behind are not supported");
            if (take('<')) {
                while (!at_end() && peek() != '>') ++at_;
                if (!take('>')) return wrong("the group's name has no end: write (?<name>...)");
            } else if (!take(':')) {
                return wrong("groups are (...), (?:...) or (?<name>...); flags are not supported");
            }
        }
        HR_ASSIGN(const std::uint32_t inner, alternatives(depth + 1));
        if (!take(')')) return wrong("a group is not closed: ) is missing, or write \\( for the character");
        return inner;
    }

    /// The quantifier after an atom, if there is one; whether it is lazy makes no difference to where a match
    /// ends first.
    Result<std::uint32_t> repeated(std::uint32_t atom, std::size_t start) {
        std::uint32_t min = 0, max = PatternSyntax::kUnbounded;
        if (take('+')) {
            min = 1;
        } else if (take('?')) {
            max = 1;
        } else if (!take('*')) {
            HR_ASSIGN(const bool is_counted, counts(min, max));
            if (!is_counted) return atom;
        }
        take('?');
        if (syntax_.nodes[atom].kind == Kind::assertion) {
            at_ = start;
            return wrong("^, $, \\b and \\B cannot be repeated");
        }
        std::uint32_t least = 0, most = 0;
        const std::size_t end = at_;
        HR_ASSIGN(const bool is_counted_again, counts(least, most));
        at_ = end;
        if (is_counted_again || peek() == '*' || peek() == '+' || peek() == '?')
            return wrong("a quantifier follows another: put the first into a group");
        return add({.kind = Kind::repeat, .children = {atom}, .min = min, .max = max});
    }

    /// {n}, {n,} or {n,m}; any other brace is a character.
    Result<bool> counts(std::uint32_t& min, std::uint32_t& max) {
        const std::size_t start = at_;
        if (!take('{')) return false;
        const std::optional<std::uint32_t> first = number();
        bool is_valid = first.has_value();
        if (is_valid) {
            min = max = *first;
            if (take(',')) max = peek() == '}' ? PatternSyntax::kUnbounded : number().value_or(0);
            is_valid = take('}');
        }
        if (!is_valid) {
            at_ = start;
            return false;
        }
        const bool is_large = min > PatternProgram::kMaxRepeats ||
                              (max > PatternProgram::kMaxRepeats && max != PatternSyntax::kUnbounded);
        if (is_large) return wrong(fmt::format("more than {} repetitions", PatternProgram::kMaxRepeats));
        if (max < min) return wrong("the repetition's bounds are in the wrong order");
        return true;
    }

    /// Capped far above what is allowed.
    std::optional<std::uint32_t> number() {
        if (!is_digit(peek())) return std::nullopt;
        std::uint32_t value = 0;
        for (; is_digit(peek()); ++at_)
            if (value < 1000000) value = value * 10 + (text_[at_] - '0');
        return value;
    }

    Result<std::uint32_t> bracket() {
        const bool is_negated = take('^');
        Ranges ranges;
        while (!take(']')) {
            if (at_end()) return wrong("a class is not closed: ] is missing, or write \\[ for the character");
            HR_ASSIGN(const Ranges first, class_item());
            const bool is_range = peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']';
            if (!is_range) {
                ranges.insert(ranges.end(), first.begin(), first.end());
                continue;
            }
            ++at_;
            HR_ASSIGN(const Ranges last, class_item());
            if (!is_single(first) || !is_single(last))
                return wrong("a range needs a character on both sides: write \\- for the character");
            if (last[0].first < first[0].first) return wrong("the range's ends are in the wrong order");
            ranges.push_back({first[0].first, last[0].first});
        }
        CharacterSet set(std::move(ranges));
        return add({.kind = Kind::one_of, .set = is_negated ? set.complement() : std::move(set)});
    }

    static bool is_single(const Ranges& ranges) {
        return ranges.size() == 1 && ranges[0].first == ranges[0].last;
    }

    Result<Ranges> class_item() {
        if (at_end()) return wrong("a class is not closed: ] is missing");
        const char32_t c = text_[at_++];
        if (c != '\\') return Ranges{{c, c}};
        if (take('b')) return Ranges{{'\b', '\b'}};
        return escaped();
    }

    Result<std::uint32_t> escape() {
        if (take('b')) return add({.kind = Kind::assertion, .assertion = Assertion::word_boundary});
        if (take('B')) return add({.kind = Kind::assertion, .assertion = Assertion::no_word_boundary});
        HR_ASSIGN(Ranges ranges, escaped());
        return add_set(std::move(ranges));
    }

    /// What comes after a backslash, other than an assertion.
    Result<Ranges> escaped() {
        if (at_end()) return wrong("the pattern ends in a backslash: write \\\\ for the character");
        const char32_t c = text_[at_++];
        if (const std::optional<Ranges> named = named_class(c)) return *named;
        static constexpr std::array<std::pair<char32_t, char32_t>, 5> kControls = {
            {{'n', '\n'}, {'r', '\r'}, {'t', '\t'}, {'v', '\v'}, {'f', '\f'}}};
        for (const auto& [name, value] : kControls)
            if (c == name) return Ranges{{value, value}};
        if (c == '0' && !is_digit(peek())) return Ranges{{0, 0}};
        if (c == 'c' && is_letter(peek())) {
            const char32_t value = text_[at_++] & 0x1F;
            return Ranges{{value, value}};
        }
        if (c == 'x') return hexadecimal(2);
        if (c == 'u') return take('{') ? braced_hexadecimal() : hexadecimal(4);
        if (is_digit(c) || c == 'k') return wrong("back references are not supported");
        if (c == 'p' || c == 'P') return wrong("character properties are not supported");
        if (is_letter(c)) return wrong("this letter means nothing after a backslash");
        return Ranges{{c, c}};
    }

    static std::optional<Ranges> named_class(char32_t c) {
        const Ranges* ranges = (c | 0x20) == 'd'   ? &kDigits
                               : (c | 0x20) == 'w' ? &kWord
                               : (c | 0x20) == 's' ? &kSpace
                                                   : nullptr;
        if (!ranges || !is_letter(c)) return std::nullopt;
        return c & 0x20 ? *ranges : CharacterSet(*ranges).complement().ranges();
    }

    std::optional<char32_t> hexadecimal_digit() {
        const char32_t c = peek(), lower = c | 0x20;
        if (!is_digit(c) && !(lower >= 'a' && lower <= 'f')) return std::nullopt;
        ++at_;
        return is_digit(c) ? c - '0' : lower - 'a' + 10;
    }

    Result<Ranges> hexadecimal(int digits) {
        char32_t value = 0;
        for (int i = 0; i < digits; ++i) {
            const std::optional<char32_t> digit = hexadecimal_digit();
            if (!digit) return wrong(fmt::format("{} hexadecimal digits are needed here", digits));
            value = value * 16 + *digit;
        }
        return Ranges{{value, value}};
    }

    Result<Ranges> braced_hexadecimal() {
        char32_t value = 0;
        while (const std::optional<char32_t> digit = hexadecimal_digit())
            value = value > 0x10FFFF ? value : value * 16 + *digit;
        if (!take('}') || value > 0x10FFFF) return wrong("\\u{...} needs hexadecimal digits up to 10FFFF");
        return Ranges{{value, value}};
    }

    std::u32string text_;
    std::size_t at_ = 0;
    PatternSyntax syntax_;
};

}  // namespace

const CharacterSet& blanks() {
    static const CharacterSet set(kSpace);
    return set;
}

Result<PatternSyntax> parse_pattern(std::string_view pattern) {
    std::u32string text;
    for (std::size_t at = 0; at < pattern.size();) {
        const CodePoint point = *first_code_point(pattern.substr(at));
        text.push_back(point.value);
        at += point.size;
    }
    return Parser(std::move(text)).parse();
}

}  // namespace headrace::llm
