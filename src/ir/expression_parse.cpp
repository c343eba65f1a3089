#include <charconv>

#include "ir/expression.h"
#include "ir/expression_words.h"

namespace headrace {
namespace {

bool starts_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (static_cast<unsigned char>(c) & 0x80);
}

bool is_in_word(char c) { return starts_word(c) || (c >= '0' && c <= '9') || c == '.' || c == ':'; }

/// The name without a call's parentheses.
std::size_t identifier_length(std::string_view text) {
    if (text.empty() || !starts_word(text[0])) return 0;
    std::size_t end = 1;
    while (end < text.size() && (is_in_word(text[end]) ||
                                 (text[end] == '-' && end + 1 < text.size() && starts_word(text[end + 1]))))
        ++end;
    return end;
}

constexpr int kMostPower = 16;

/// A symbol of that name. Unknown functions, and names that were shortened, may have negative values.
Expression symbol_of(std::string text, const Expression::RangeOf& range_of) {
    const auto known = range_of ? range_of(text) : std::nullopt;
    const bool is_opaque = text.ends_with(')') || is_cut(text);
    const Range range = known.value_or(is_opaque ? Range{} : kAnyExtent);
    return Expression::symbol(std::move(text), range);
}

/// The result is empty where a text is no expression. Texts are at most as long as a symbol's name may be,
/// and so is the depth.
class Parser {
public:
    Parser(std::string_view text, const Expression::RangeOf& range_of) : rest_(text), range_of_(range_of) {}

    std::optional<Expression> whole() {
        auto parsed = sum();
        skip_spaces();
        return rest_.empty() ? parsed : std::nullopt;
    }

private:
    std::optional<Expression> sum() {
        auto total = taken("-") ? negated(product()) : product();
        while (total) {
            if (taken("+"))
                total = combined(total, product(), [](auto& a, auto& b) { return a + b; });
            else if (taken("-"))
                total = combined(total, product(), [](auto& a, auto& b) { return a - b; });
            else
                break;
        }
        return total;
    }

    std::optional<Expression> product() {
        auto total = power();
        while (total) {
            if (taken("^/"))
                total = combined(total, power(), [](auto& a, auto& b) { return a.divided_up(b); });
            else if (taken("%"))
                total = combined(total, power(), [](auto& a, auto& b) { return a % b; });
            else if (taken("//") || taken("/"))
                total = combined(total, power(), [](auto& a, auto& b) { return a / b; });
            else if (taken("*"))
                total = combined(total, power(), [](auto& a, auto& b) { return a * b; });
            else
                break;
        }
        return total;
    }

    std::optional<Expression> power() {
        const auto base = operand();
        if (!base || !taken("**")) return base;
        const auto exponent = integer();
        if (!exponent || *exponent > kMostPower) return std::nullopt;
        Expression total = 1;
        for (std::int64_t i = 0; i < *exponent; ++i) total = total * *base;
        return total;
    }

    std::optional<Expression> operand() {
        skip_spaces();
        if (rest_.empty()) return std::nullopt;
        if (taken("(")) {
            auto inner = sum();
            return taken(")") ? inner : std::nullopt;
        }
        if (rest_[0] == '\'') return within_quotes();
        if (rest_[0] >= '0' && rest_[0] <= '9') {
            const auto number = integer();
            return number ? std::optional(Expression(*number)) : std::nullopt;
        }
        if (auto known = function()) return known;
        const std::size_t length = word_length(rest_);
        if (length == 0) return std::nullopt;
        auto word = symbol_of(std::string(rest_.substr(0, length)), range_of_);
        rest_.remove_prefix(length);
        return word;
    }

    std::optional<Expression> within_quotes() {
        std::size_t end = 1;
        while (end < rest_.size() && (rest_[end] != '\'' || rest_.substr(end + 1).starts_with('\'')))
            end += rest_[end] == '\'' ? 2 : 1;
        if (end >= rest_.size() || end == 1) return std::nullopt;
        auto name = symbol_of(shortened(spelled(name_spelled(rest_.substr(0, end + 1)))), range_of_);
        rest_.remove_prefix(end + 1);
        return name;
    }

    /// A known function, such as floor(n*1.5); of an unknown one nothing is read.
    std::optional<Expression> function() {
        const std::string_view name = rest_.substr(0, identifier_length(rest_)), before = rest_;
        if (!rest_.substr(name.size()).starts_with('(')) return std::nullopt;
        if (name == "floor") return scaled();
        const bool is_extreme = name == "Max" || name == "Min",
                   is_rest = name == "Mod" || name == "PythonMod";
        if (!is_extreme && !is_rest) return std::nullopt;
        rest_.remove_prefix(name.size());
        if (auto of = operands(); of && (is_extreme || of->size() == 2)) {
            if (is_rest) return (*of)[0] % (*of)[1];
            return name == "Max" ? Expression::largest(std::move(*of)) : Expression::least(std::move(*of));
        }
        rest_ = before;
        return std::nullopt;
    }

    /// "floor(n*1.5)"
    std::optional<Expression> scaled() {
        const std::size_t length = word_length(rest_);
        const std::string_view within = rest_.substr(6, length > 7 ? length - 7 : 0);
        const std::size_t star = within.rfind('*');
        double scale = 0;
        if (star == std::string_view::npos) return std::nullopt;
        const auto [end, error] =
            std::from_chars(within.data() + star + 1, within.data() + within.size(), scale);
        const auto base = Parser(within.substr(0, star), range_of_).whole();
        if (!base || error != std::errc() || end != within.data() + within.size() || !(scale > 0))
            return std::nullopt;
        rest_.remove_prefix(length);
        return base->scaled(scale);
    }

    std::optional<std::vector<Expression>> operands() {
        std::vector<Expression> list;
        if (!taken("(")) return std::nullopt;
        do {
            auto next = sum();
            if (!next) return std::nullopt;
            list.push_back(std::move(*next));
        } while (taken(","));
        return taken(")") ? std::optional(std::move(list)) : std::nullopt;
    }

    std::optional<std::int64_t> integer() {
        skip_spaces();
        std::int64_t number = 0;
        const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
        if (error != std::errc() || number < 0) return std::nullopt;
        rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
        const bool is_whole = rest_.empty() || !is_in_word(rest_[0]);  // "2.5" and "2nd" are not
        return is_whole ? std::optional(number) : std::nullopt;
    }

    static std::optional<Expression> negated(const std::optional<Expression>& x) {
        return x ? std::optional(Expression(0) - *x) : std::nullopt;
    }

    template <class F>
    static std::optional<Expression> combined(const std::optional<Expression>& a,
                                              const std::optional<Expression>& b, F&& f) {
        return b ? std::optional(f(*a, *b)) : std::nullopt;
    }

    void skip_spaces() {
        while (!rest_.empty() && rest_[0] == ' ') rest_.remove_prefix(1);
    }

    bool taken(std::string_view token) {
        skip_spaces();
        if (!rest_.starts_with(token) || (token == "*" && rest_.starts_with("**"))) return false;
        rest_.remove_prefix(token.size());
        return true;
    }

    std::string_view rest_;
    const Expression::RangeOf& range_of_;
};

}  // namespace

std::size_t word_length(std::string_view text) {
    const std::size_t name = identifier_length(text);
    if (name == 0 || name == text.size() || text[name] != '(') return name;
    int depth = 0;
    bool is_quoted = false;
    for (std::size_t i = name; i < text.size(); ++i) {
        is_quoted ^= text[i] == '\'';
        if (!is_quoted) depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
        if (depth == 0) return i + 1;
    }
    return 0;
}

bool is_cut(std::string_view text) {
    constexpr std::size_t kHash = 16;
    if (text.size() < kHash || !text.substr(0, text.size() - kHash).ends_with("...#")) return false;
    return text.substr(text.size() - kHash).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_word(std::string_view text) { return !text.empty() && word_length(text) == text.size(); }

std::string quoted(std::string_view name) {
    std::string text = "'";
    for (const char c : name) text.append(c == '\'' ? 2 : 1, c);
    return text + "'";
}

std::string spelled(std::string_view name) {
    const bool is_plain = name.find_first_of("()'") == std::string_view::npos;
    if (name.empty() || (is_plain && is_word(name))) return std::string(name);
    const bool is_read = Parser(name, {}).whole().has_value();
    return !is_read && (is_plain || is_cut(name)) ? std::string(name) : quoted(name);
}

std::string name_spelled(std::string_view text) {
    if (text.size() < 2 || !text.starts_with('\'') || !text.ends_with('\'')) return std::string(text);
    std::string name;
    for (std::size_t i = 1; i + 1 < text.size(); ++i) {
        name += text[i];
        if (text[i] == '\'') ++i;
    }
    return name;
}

Expression Expression::parse(std::string_view text, const RangeOf& range_of) {
    auto parsed = Parser(text, range_of).whole();
    // A symbol stays one where its name is a number's: it is known only at run time.
    if (parsed && !parsed->number()) return std::move(*parsed);
    return symbol_of(shortened(spelled(text)), range_of);
}

}  // namespace headrace
