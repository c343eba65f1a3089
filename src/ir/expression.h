#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headrace {

class Dim;

/// What holds for all values of the symbols, for none, or depends on them.
enum class Answer : std::uint8_t { no, yes, unknown };

/// All values from least to most; the ends of 64 bits stand for no limit.
struct Range {
    std::int64_t least = INT64_MIN, most = INT64_MAX;
    bool operator==(const Range&) const = default;
};
inline constexpr Range kAnyExtent{0, INT64_MAX};

/// Integer arithmetic of symbols in a canonical form: a polynomial with integer coefficients, in which a
/// quotient rounded down, a largest and a least of expressions count as symbols. What has one form is equal
/// for all values, and prints alike however it was written: "1 + n", "n+1" and "(2*n + 2)//2" are "(n+1)".
/// What is equal but has two forms ("(n+1)//2" and "n - n//2") is found by compare functions.
///
/// A symbol has a range, which the forms of extremes and all comparisons use: of one name in one graph, every
/// range that is declared holds.
///
/// Arithmetic never fails: a result that overflows, has too many terms or is too long is a symbol of its own.
class Expression {
public:
    Expression(std::int64_t number = 0);
    explicit Expression(const Dim& extent);
    /// A symbol as texts have it by itself: a name that is spelled, or arithmetic that is left as it stands.
    static Expression symbol(std::string text, Range range = kAnyExtent);
    /// A symbol of any name; where that looks like an expression it is spelled within quotes.
    static Expression named(std::string_view name, Range range = kAnyExtent);
    using RangeOf = std::function<std::optional<Range>(const std::string& name)>;
    /// Reads an expression of integers, names, + - * ** % parentheses, // and / (rounded down), ^/ (rounded
    /// up), Max, Min, Mod and calls of other functions, which are names, as words joined by hyphens are.
    /// Within quotes ('a*b', 'it''s') anything is a name, and so is any other text as a whole. Names of which
    /// `range_of` knows nothing are extents, at least 0.
    static Expression parse(std::string_view text, const RangeOf& range_of = {});

    std::string str() const;
    std::optional<std::int64_t> number() const;

    Expression operator+(const Expression& other) const;
    Expression operator-(const Expression& other) const;
    Expression operator*(const Expression& other) const;
    /// Rounded down.
    Expression operator/(const Expression& divisor) const;
    /// The remainder of that, with the divisor's sign.
    Expression operator%(const Expression& divisor) const;
    /// The quotient rounded up.
    Expression divided_up(const Expression& divisor) const;
    /// Times a positive number, rounded down, as floats of 64 bits do it.
    Expression scaled(double scale) const;
    static Expression largest(std::vector<Expression> of);
    static Expression least(std::vector<Expression> of);
    /// The same form.
    bool operator==(const Expression& other) const;

    /// Holds all values that it can have; not always the narrowest.
    Range range() const;
    /// Never wrong where the arithmetic fits in 64 bits; `unknown` where ranges do not decide it.
    Answer equals(const Expression& other) const;
    Answer is_less(const Expression& other) const;
    Answer is_at_least(const Expression& other) const;

    /// A sum of numbers times products of symbols, quotients and extremes; without any: the number that is
    /// added.
    struct Term;
    std::vector<Term> terms() const;
    /// Its symbols, also those within quotients and the like, with their ranges.
    std::map<std::string, Range> symbols() const;
    std::vector<std::string> names() const;

    /// With expressions in place of names; names for which there is none stay.
    using Find = std::function<std::optional<Expression>(const std::string& name)>;
    Expression substituted(const Find& find) const;

    /// factor * name + offset, where it is no more than that: its value gives the name's.
    struct Line {
        std::string name;
        std::int64_t factor, offset;
    };
    std::optional<Line> line() const;

private:
    struct Atom;
    struct Rules;   // how quotients and extremes are brought to the form
    struct Bounds;  // which values it can have
    friend struct Bounder;
    using AtomPtr = std::shared_ptr<const Atom>;
    using Monomial = std::vector<AtomPtr>;  // sorted by text; none: 1
    struct Less {                           // the order in which terms print: the number last
        bool operator()(const Monomial& a, const Monomial& b) const;
    };
    using Terms = std::map<Monomial, std::int64_t, Less>;

    explicit Expression(Terms terms) : terms_(std::move(terms)) {}
    explicit Expression(AtomPtr atom);

    Terms terms_;  // none has the factor 0
};

struct Expression::Term {
    std::int64_t factor = 1;
    std::vector<Expression> of;
};

/// A name that files and messages can hold: of a long one its beginning, and a hash of the whole.
std::string shortened(std::string name);

}  // namespace headrace
