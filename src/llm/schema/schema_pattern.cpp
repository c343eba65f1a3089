#include "llm/schema/schema_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "llm/stopping/pattern_syntax.h"

namespace headrace::llm {
namespace {

using PatternKind = PatternSyntax::Kind;
using PatternNode = PatternSyntax::Node;
using NodeIds = std::vector<std::uint32_t>;

constexpr std::uint32_t kUnlimited = PatternSyntax::kUnbounded;
static_assert(kUnlimited == TextLengths::kAny);

/// Characters that JSON writes with a backslash, and what follows that.
constexpr std::pair<char32_t, char> kJsonEscapes[] = {{'"', '"'},  {'\\', '\\'}, {'\b', 'b'}, {'\f', 'f'},
                                                      {'\n', 'n'}, {'\r', 'r'},  {'\t', 't'}};

std::uint32_t added(std::uint32_t a, std::uint32_t b) {
    return a == kUnlimited || b == kUnlimited ? kUnlimited : a + b;
}

std::uint32_t multiplied(std::uint32_t a, std::uint32_t b) {
    if (a == 0 || b == 0) return 0;
    const std::uint64_t product = std::uint64_t{a} * b;
    return a == kUnlimited || b == kUnlimited || product >= kUnlimited ? kUnlimited
                                                                       : static_cast<std::uint32_t>(product);
}

bool is_plain(char32_t c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

std::string code_point(char32_t c) {
    if (is_plain(c)) return std::string(1, static_cast<char>(c));
    const auto value = static_cast<std::uint32_t>(c);
    return c < 0x100 ? fmt::format("\\x{:02X}", value) : fmt::format("\\U{:08X}", value);
}

/// Those that stand in JSON as they are.
CharacterSet unescaped(const CharacterSet& set) {
    std::vector<CharacterSet::Range> others = set.complement().ranges();
    others.insert(others.end(), {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}, {0x7F, 0x7F}});
    return CharacterSet(std::move(others)).complement();
}

class PatternWriter {
public:
    explicit PatternWriter(PatternSyntax syntax) : syntax_(std::move(syntax)) {}

    Result<KeptPattern> write(const TextLengths& wanted) {
        const auto root = static_cast<std::uint32_t>(syntax_.nodes.size() - 1);
        const NodeIds whole = alternatives_of(root);
        KeptPattern kept{.text = "^"};
        for (std::size_t i = 0; i < whole.size(); ++i) {
            NodeIds parts = anchored(whole[i]);
            kept.keeps_lengths = fit(parts, wanted) && kept.keeps_lengths;
            if (whole.size() > 1) kept.text += i == 0 ? "(?:" : "|";
            for (const std::uint32_t part : parts) HR_TRY(write(part, kept.text));
        }
        if (whole.size() > 1) kept.text += ')';
        kept.text += '$';
        return kept;
    }

private:
    const PatternNode& node(std::uint32_t id) const { return syntax_.nodes[id]; }
    std::uint32_t add(PatternNode node) {
        syntax_.nodes.push_back(std::move(node));
        return static_cast<std::uint32_t>(syntax_.nodes.size() - 1);
    }

    /// Also those of a group around all of it.
    NodeIds alternatives_of(std::uint32_t id) const {
        while (node(id).kind == PatternKind::sequence && node(id).children.size() == 1)
            id = node(id).children[0];
        return node(id).kind == PatternKind::alternatives ? node(id).children : NodeIds{id};
    }

    bool is_assertion(std::uint32_t id, Assertion which) const {
        return node(id).kind == PatternKind::assertion && node(id).assertion == which;
    }

    /// The parts of an alternative, with any text where it has no anchor.
    NodeIds anchored(std::uint32_t id) {
        NodeIds parts;
        flatten(id, parts);
        const bool has_start = !parts.empty() && is_assertion(parts.front(), Assertion::line_start);
        if (has_start) parts.erase(parts.begin());
        const bool has_end = !parts.empty() && is_assertion(parts.back(), Assertion::line_end);
        if (has_end) parts.pop_back();
        if (!has_start) parts.insert(parts.begin(), any_text());
        if (!has_end) parts.push_back(any_text());
        return parts;
    }

    void flatten(std::uint32_t id, NodeIds& parts) const {
        if (node(id).kind != PatternKind::sequence) return parts.push_back(id);
        for (const std::uint32_t child : node(id).children) flatten(child, parts);
    }

    std::uint32_t any_text() {
        const std::uint32_t any = add({.kind = PatternKind::one_of,
                                       .set = CharacterSet(std::vector<CharacterSet::Range>{}).complement()});
        return add({.kind = PatternKind::repeat, .children = {any}, .min = 0, .max = kUnlimited});
    }

    TextLengths lengths(std::uint32_t id) const {
        const PatternNode& part = node(id);
        TextLengths sum{0, 0};
        switch (part.kind) {
            case PatternKind::one_of: return {1, 1};
            case PatternKind::assertion: return {0, 0};
            case PatternKind::sequence: return lengths(part.children);
            case PatternKind::alternatives:
                sum = lengths(part.children[0]);
                for (const std::uint32_t child : part.children) {
                    const TextLengths other = lengths(child);
                    sum = {std::min(sum.least, other.least), std::max(sum.most, other.most)};
                }
                return sum;
            case PatternKind::repeat:
                sum = lengths(part.children[0]);
                return {multiplied(sum.least, part.min), multiplied(sum.most, part.max)};
        }
        return sum;
    }

    TextLengths lengths(const NodeIds& parts) const {
        TextLengths sum{0, 0};
        for (const std::uint32_t part : parts) {
            const TextLengths own = lengths(part);
            sum = {added(sum.least, own.least), added(sum.most, own.most)};
        }
        return sum;
    }

    /// Takes repetitions away that give a length that is not wanted: possible where one part alone has no
    /// length of its own. False: some texts may have one.
    bool fit(NodeIds& parts, const TextLengths& wanted) {
        const TextLengths whole = lengths(parts);
        if (whole.least >= wanted.least && whole.most <= wanted.most) return true;
        std::uint32_t fixed = 0;
        auto open = parts.end();
        for (auto part = parts.begin(); part != parts.end(); ++part) {
            const TextLengths own = lengths(*part);
            if (own.least == own.most) {
                fixed = added(fixed, own.least);
            } else {
                if (open != parts.end() || node(*part).kind != PatternKind::repeat) return false;
                open = part;
            }
        }
        if (open == parts.end()) return false;
        PatternNode repeat = node(*open);
        const TextLengths unit = lengths(repeat.children[0]);
        if (unit.least != unit.most || unit.least == 0 || fixed > wanted.most) return false;
        const std::uint32_t missing = wanted.least > fixed ? wanted.least - fixed : 0;
        repeat.min = std::max(repeat.min, (missing + unit.least - 1) / unit.least);
        if (wanted.most != TextLengths::kAny)
            repeat.max = std::min(repeat.max, (wanted.most - fixed) / unit.least);
        if (repeat.min > repeat.max) return false;
        *open = add(std::move(repeat));
        return true;
    }

    Status write(std::uint32_t id, std::string& text) const {
        const PatternNode& part = node(id);
        switch (part.kind) {
            case PatternKind::one_of: return write_character(part.set, text);
            case PatternKind::assertion:
                return invalid("^, $, \\b and \\B are kept to at the beginning and at the end only");
            case PatternKind::sequence:
                for (const std::uint32_t child : part.children) HR_TRY(write(child, text));
                return success();
            case PatternKind::alternatives:
                for (std::size_t i = 0; i < part.children.size(); ++i) {
                    text += i == 0 ? "(?:" : "|";
                    HR_TRY(write(part.children[i], text));
                }
                text += ')';
                return success();
            case PatternKind::repeat: return write_repeat(part, text);
        }
        return success();
    }

    Status write_repeat(const PatternNode& repeat, std::string& text) const {
        std::string inner;
        HR_TRY(write(repeat.children[0], inner));
        if (inner.empty() || repeat.max == 0) return success();
        constexpr std::uint32_t kMostTimes = 2000;  // llama.cpp's own limit
        if (repeat.min > kMostTimes || (repeat.max > kMostTimes && repeat.max != kUnlimited))
            return invalid("at most {} repetitions can be counted", kMostTimes);
        text += "(?:" + inner + ")";
        if (repeat.max == kUnlimited && repeat.min <= 1)
            text += repeat.min == 0 ? '*' : '+';
        else if (repeat.max == kUnlimited)
            text += fmt::format("{{{},}}", repeat.min);
        else
            text += fmt::format("{{{},{}}}", repeat.min, repeat.max);
        return success();
    }

    /// As it is in JSON.
    static Status write_character(const CharacterSet& set, std::string& text) {
        std::vector<std::string> ways;
        const CharacterSet plain = unescaped(set);
        if (!plain.ranges().empty()) {
            const auto& [first, last] = plain.ranges().front();
            const bool is_letter = plain.ranges().size() == 1 && first == last && is_plain(first);
            ways.push_back(is_letter ? code_point(first) : class_of(plain));
        }
        for (const auto& [character, letter] : kJsonEscapes)
            if (set.contains(character)) ways.push_back(escaped_in_json(letter));
        if (ways.empty()) return invalid("it asks for a character that is none, or a control character");
        if (ways.size() == 1) {
            text += ways.front();
        } else {
            for (std::size_t i = 0; i < ways.size(); ++i) text += (i == 0 ? "(?:" : "|") + ways[i];
            text += ')';
        }
        return success();
    }

    static std::string escaped_in_json(char letter) {
        return "\\\\" + (letter == '\\' ? std::string("\\\\") : std::string(1, letter));
    }

    static std::string class_of(const CharacterSet& set) {
        std::string text = "[";
        for (const auto& [first, last] : set.ranges()) {
            text += code_point(first);
            if (last > first) text += "-" + code_point(last);
        }
        return text + "]";
    }

    PatternSyntax syntax_;
};

}  // namespace

Result<KeptPattern> keep_pattern(std::string_view pattern, const TextLengths& wanted) {
    if (find_invalid_utf8(pattern)) return invalid("it is not UTF-8");
    HR_ASSIGN(PatternSyntax syntax, parse_pattern(pattern));
    return PatternWriter(std::move(syntax)).write(wanted);
}

}  // namespace headrace::llm
