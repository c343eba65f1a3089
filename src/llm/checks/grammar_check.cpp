#include "llm/checks/grammar_check.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "llm/checks/grammar_shape.h"

namespace headrace::llm {
namespace {

constexpr std::size_t kMostGrammarBytes = 256u << 10;
constexpr std::size_t kMostRules = 5000;
constexpr int kMostGrammarLevels = 100;
constexpr std::uint64_t kMostRepetitions = 2000;   // llama.cpp's own limit
constexpr std::uint64_t kMostOptional = 32;        // parts in a row
constexpr std::uint64_t kMostElements = 1u << 20;  // characters and names, repetitions written out
constexpr std::uint64_t kMostBeginnings = 1u << 20, kMostOfARule = 1u << 14;
constexpr std::size_t kMostRulesInARow = 1000;  // a call of llama.cpp inside the other for each

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool in_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '-'; }
bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

/// Reads GBNF as llama.cpp does, which tells only stderr what is wrong.
class Reader {
public:
    Reader(std::string_view source, const IsToken& is_token) : source_(source), is_token_(is_token) {}

    Status run() {
        skip_space(true);
        while (!at_end()) HR_TRY(read_rule());
        if (!defined_.contains("root"))
            return invalid("grammar: there is no rule 'root', with which it begins");
        for (const std::string_view name : used_)
            if (!defined_.contains(name))
                return invalid("grammar: the rule '{}' is used, and none of that name is defined", name);
        if (shape_.optional_in_a_row(kMostOptional + 1) > kMostOptional)
            return invalid(
                "grammar: more than {} parts in a row may be left out, and choosing a token takes time "
                "with the third power of that; put what belongs together into rules that are not empty",
                kMostOptional);
        return check_beginnings();
    }

private:
    Status check_beginnings() const {
        const GrammarShape::Beginnings found = shape_.beginnings(kMostBeginnings);
        if (found.is_endless)
            return invalid("grammar: left recursion: a rule begins with itself; let it end with itself");
        if (found.depth > kMostRulesInARow)
            return invalid(
                "grammar: {} rules or brackets begin with each other in a row, and {} are possible",
                found.depth, kMostRulesInARow);
        if (found.calls >= kMostBeginnings || found.of_a_rule > kMostOfARule)
            return invalid(
                "grammar: its rules begin with each other in more than {} ways, and each is looked at; let "
                "alternatives begin with texts, or have each rule once among them",
                found.of_a_rule > kMostOfARule ? kMostOfARule : kMostBeginnings);
        return success();
    }

    /// What a repetition after it repeats.
    struct Item {
        std::uint64_t elements = 0;
        std::uint64_t rules = 1;  // as llama.cpp counts them for its limit
        GrammarShape::Part part = {};
    };

    bool at_end() const { return at_ == source_.size(); }
    char here() const { return at_end() ? '\0' : source_[at_]; }
    bool take(std::string_view text) {
        if (!source_.substr(at_).starts_with(text)) return false;
        at_ += text.size();
        return true;
    }

    Error wrong(std::string_view what) const {
        const std::string_view before = source_.substr(0, at_);
        const auto line = 1 + std::count(before.begin(), before.end(), '\n');
        const std::string_view row = before.substr(before.rfind('\n') + 1);  // npos + 1 is 0
        const auto column =
            1 + row.size() -
            static_cast<std::size_t>(std::count_if(row.begin(), row.end(), continues_character));
        return invalid("grammar: line {}, column {}: {}", line, column, what);
    }
    /// With what is there in place of what was expected.
    Error expected(std::string_view what) const {
        constexpr std::size_t kShown = 20;
        std::string_view rest = source_.substr(at_);
        rest = rest.substr(0, rest.find_first_of("\r\n"));
        std::size_t end = std::min(rest.size(), kShown);
        while (end < rest.size() && continues_character(rest[end])) ++end;
        if (rest.empty())
            return wrong(
                fmt::format("{} is expected at the end of the {}", what, at_end() ? "text" : "line"));
        return wrong(fmt::format("{} is expected before '{}{}'", what, rest.substr(0, end),
                                 end < rest.size() ? "..." : ""));
    }

    void skip_space(bool newlines) {
        for (;;) {
            const char c = here();
            if (c == '#')
                at_ = std::min(source_.size(), source_.find_first_of("\r\n", at_));
            else if (c == ' ' || c == '\t' || (newlines && (c == '\r' || c == '\n')))
                ++at_;
            else
                return;
        }
    }

    Result<std::string_view> read_name() {
        const std::size_t start = at_;
        while (in_name(here())) ++at_;
        if (at_ == start) return expected("a rule's name");
        return source_.substr(start, at_ - start);
    }

    /// Where a rule of that name is, or will be.
    std::size_t rule_of(std::string_view name) {
        const auto [found, is_new] = names_.emplace(name, shape_.rules.size());
        if (is_new) shape_.rules.emplace_back();
        return found->second;
    }

    Status read_rule() {
        HR_ASSIGN(const std::string_view name, read_name());
        defined_.insert(name);
        if (defined_.size() > kMostRules) return invalid("grammar: it has more than {} rules", kMostRules);
        skip_space(false);
        if (!take("::=")) return expected("'::='");
        skip_space(true);
        const std::size_t rule = rule_of(name);
        shape_.rules[rule].alternatives.clear();  // of two definitions the last one counts
        HR_TRY(read_alternates(0, rule));
        if (!at_end() && here() != '\r' && here() != '\n')
            return here() == ')' ? wrong("no '(' belongs to this ')'")
                                 : expected("a text, a name, a bracket, '|' or the end of the line");
        skip_space(true);
        return success();
    }

    Status read_alternates(int level, std::size_t rule) {
        do {
            GrammarShape::Sequence sequence;
            HR_TRY(read_sequence(level, sequence));
            shape_.rules[rule].alternatives.push_back(std::move(sequence));
        } while (take_bar());
        return success();
    }

    bool take_bar() {
        if (!take("|")) return false;
        skip_space(true);
        return true;
    }

    Status read_sequence(int level, GrammarShape::Sequence& sequence) {
        std::optional<Item> item;
        for (;;) {
            const char c = here();
            if (c == '*' || c == '+' || c == '?' || c == '{') {
                HR_TRY(read_repetition(level > 0, item));
                sequence.back() = item->part;
                continue;
            }
            if (!in_name(c) && std::string_view("\"[<!(.").find(c) == std::string_view::npos)
                return success();
            if (at_end()) return success();
            HR_ASSIGN(item, read_item(level));
            HR_TRY(count(item->elements));
            if (item->elements == 0) item->part = {.is_optional = true, .is_nothing = true};  // ""
            sequence.push_back(item->part);
            skip_space(level > 0);
        }
    }

    Result<Item> read_item(int level) {
        const char c = here();
        if (in_name(c)) {
            HR_ASSIGN(const std::string_view name, read_name());
            used_.insert(name);
            return Item{.elements = 1, .part = {.rule = rule_of(name)}};
        }
        if (c == '(') return read_group(level + 1);
        if (c == '<' || c == '!') return read_token();
        ++at_;
        if (c == '"') return read_text();
        if (c == '[') return read_characters();
        return Item{1};  // any character
    }

    Result<Item> read_text() {
        Item item;
        for (; here() != '"'; ++item.elements) HR_TRY(read_character("'\"'"));
        ++at_;
        return item;
    }

    Result<Item> read_characters() {
        Item item;
        take("^");
        for (; here() != ']'; ++item.elements) {
            const std::size_t start = at_;
            HR_ASSIGN(const std::uint32_t first, read_character("']'"));
            if (here() != '-' || source_.substr(at_).starts_with("-]")) continue;
            ++at_;
            HR_ASSIGN(const std::uint32_t last, read_character("']'"));
            ++item.elements;
            if (first <= last) continue;
            const std::string range(source_.substr(start, at_ - start));
            at_ = start;
            return wrong(fmt::format("the range '{}' ends before it begins", range));
        }
        ++at_;
        return item;
    }

    /// Its code point. closing: what is missing when the grammar ends here.
    Result<std::uint32_t> read_character(std::string_view closing) {
        if (at_end()) return expected(closing);
        if (here() != '\\') {
            const auto lead = static_cast<std::uint8_t>(here());
            std::uint32_t code = lead < 0x80 ? lead
                                             : lead & (lead < 0xE0   ? 0x1Fu
                                                       : lead < 0xF0 ? 0x0Fu
                                                                     : 0x07u);
            while (++at_, !at_end() && continues_character(here()))
                code = (code << 6) + (static_cast<std::uint8_t>(here()) & 0x3Fu);
            return code;
        }
        const char kind = at_ + 1 < source_.size() ? source_[at_ + 1] : '\0';
        const std::size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
        if (digits == 0 &&
            (kind == '\0' || std::string_view("trn\\\"[]-").find(kind) == std::string_view::npos))
            return wrong("after '\\' there may be x, u, U, t, r, n, \\, \", [, ] or -");
        at_ += 2;
        for (std::size_t i = 0; i < digits; ++i, ++at_)
            if (!is_hex(here()))
                return expected(fmt::format("a hexadecimal digit (\\{} has {})", kind, digits));
        if (digits == 0) return kind == 't' ? '\t' : kind == 'r' ? '\r' : kind == 'n' ? '\n' : kind;
        std::uint32_t code = 0;
        const char* end = source_.data() + at_;
        std::from_chars(end - digits, end, code, 16);
        return code;
    }

    /// <[number]> or <text>, behind a "!" that excludes it.
    Result<Item> read_token() {
        take("!");
        if (here() != '<') return expected("'<' of a token");
        const std::size_t start = at_++;
        if (take("[")) {
            std::uint32_t id = 0;
            const char* first = source_.data() + at_;
            const auto [end, error] = std::from_chars(first, source_.data() + source_.size(), id);
            if (error != std::errc()) return expected("a token's number");
            at_ += static_cast<std::size_t>(end - first);
            if (!take("]>")) return expected("']>'");
        } else {
            at_ = std::min(source_.size(), source_.find('>', at_));
            if (at_end()) return expected("'>'");
            ++at_;
        }
        const std::string_view text = source_.substr(start, at_ - start);
        if (is_token_ && !is_token_(text)) {
            at_ = start;
            return wrong(fmt::format("'{}' is not one token of the model", text.substr(0, 100)));
        }
        return Item{1};
    }

    Result<Item> read_group(int level) {
        if (level > kMostGrammarLevels)
            return invalid(
                "grammar: brackets are nested deeper than {}; give the inner ones rules of their own",
                kMostGrammarLevels);
        ++at_;
        skip_space(true);
        const std::uint64_t before = rules();
        ++generated_;
        const std::size_t rule = shape_.rules.size();
        shape_.rules.emplace_back();
        HR_TRY(read_alternates(level, rule));
        if (!take(")")) return expected("')'");
        return Item{1, std::max<std::uint64_t>(1, rules() - before), {.rule = rule}};
    }

    /// *, +, ?, {m}, {m,} and {m,n}.
    Status read_repetition(bool newlines, std::optional<Item>& item) {
        if (!item || item->elements == 0)
            return wrong(fmt::format("'{}' has nothing before it to repeat", here()));
        const std::size_t start = at_;
        const char kind = source_[at_++];
        std::uint64_t least = kind == '+' ? 1 : 0;
        std::optional<std::uint64_t> most;
        if (kind == '?') most = 1;
        skip_space(newlines);
        if (kind == '{') HR_TRY(read_range(newlines, least, most));
        skip_space(newlines);
        if (most && *most < least) {
            at_ = start;
            return wrong(fmt::format("a repetition from {} to {} times", least, *most));
        }
        const std::uint64_t times = most && *most > 0 ? *most : std::max<std::uint64_t>(1, least);
        if (item->rules * times > kMostRepetitions) {
            at_ = start;
            return wrong(
                fmt::format("repetitions inside of each other: {} times what makes {} rules, and {} "
                            "rules are possible",
                            times, item->rules, kMostRepetitions));
        }
        const std::uint64_t optional = most ? *most - least : 1;  // a rule each
        HR_TRY(count(item->elements * least + optional * (item->elements + 3)));
        item->rules *= times;
        item->elements = item->elements * least + (optional > 0);
        generated_ += optional;
        item->part.is_optional |= least == 0;
        item->part.times *= times;
        if (item->elements == 0) item->part = {.is_optional = true, .is_nothing = true};
        return success();
    }

    Status read_range(bool newlines, std::uint64_t& least, std::optional<std::uint64_t>& most) {
        HR_ASSIGN(least, read_count());
        skip_space(newlines);
        most = least;
        if (take(",")) {
            most.reset();
            skip_space(newlines);
            if (is_digit(here())) {
                HR_ASSIGN(most, read_count());
                skip_space(newlines);
            }
        }
        if (!take("}")) return expected("'}'");
        return success();
    }

    Result<std::uint64_t> read_count() {
        const std::size_t start = at_;
        while (is_digit(here())) ++at_;
        const std::string_view digits = source_.substr(start, at_ - start);
        if (digits.empty()) return expected("a number");
        std::uint64_t value = 0;
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        if (error != std::errc() || value > kMostRepetitions)
            return invalid("grammar: something is repeated {} times, and {} are possible",
                           digits.substr(0, 40), kMostRepetitions);
        return value;
    }

    Status count(std::uint64_t elements) {
        elements_ += elements;
        if (elements_ <= kMostElements) return success();
        return wrong(fmt::format("with its repetitions written out the grammar has more than {} characters",
                                 kMostElements));
    }

    std::uint64_t rules() const { return names_.size() + generated_; }

    const std::string_view source_;
    const IsToken& is_token_;
    std::size_t at_ = 0;
    std::map<std::string_view, std::size_t> names_;  // with the places of their rules
    std::set<std::string_view> defined_, used_;
    GrammarShape shape_;
    std::uint64_t generated_ = 0;  // rules without a name
    std::uint64_t elements_ = 0;
};

}  // namespace

Status check_grammar(std::string_view source, const IsToken& is_token) {
    if (source.size() > kMostGrammarBytes)
        return invalid("grammar: it has {} bytes, and {} are allowed", source.size(), kMostGrammarBytes);
    if (source.starts_with("%llguidance"))
        return invalid("grammar: llguidance is not built in; give a grammar in GBNF");
    if (source.find('\0') != std::string_view::npos) return invalid("grammar: it has a NUL byte inside");
    return Reader(source, is_token).run();
}

}  // namespace headrace::llm
