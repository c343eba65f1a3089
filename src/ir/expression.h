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

#include "ir/tensor_type.h"

namespace headrace {

/// Integer arithmetic of named extents in a canonical form: a polynomial with integer coefficients, in which
/// a quotient rounded down, a largest and a least of expressions count as names. What has one form is equal
/// for all values, and prints alike however it was written: "1 + n", "n+1" and "(2*n + 2)//2" are "(n+1)".
///
/// Arithmetic never fails: a result that overflows, has too many terms or is too long is a name of its own.
class Expression {
public:
    Expression(std::int64_t number = 0);
    explicit Expression(const Dim& extent);
    static Expression symbol(std::string name);
    /// Of integers, names, + - * ** parentheses, // and / (rounded down), ^/ (rounded up), Max, Min, Mod and
    /// calls of other functions, which are names, as words joined by hyphens are. Any other text is one name.
    static Expression parse(std::string_view text);

    std::string str() const;
    std::optional<std::int64_t> number() const;

    Expression operator+(const Expression& other) const;
    Expression operator-(const Expression& other) const;
    Expression operator*(const Expression& other) const;
    /// Rounded down.
    Expression operator/(const Expression& divisor) const;
    /// Times a positive number, rounded down, as floats of 64 bits do it.
    Expression scaled(double scale) const;
    static Expression largest(std::vector<Expression> of);
    static Expression least(std::vector<Expression> of);
    bool operator==(const Expression& other) const;

    /// A sum of numbers times names; no names: the number that is added.
    struct Term {
        std::int64_t factor = 1;
        std::vector<std::string> names;
    };
    std::vector<Term> terms() const;
    /// Its names, and those within quotients and the like, where `known` does not hold for them as a whole.
    std::vector<std::string> names(const std::function<bool(const std::string&)>& known = {}) const;

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
    struct Rules;  // how quotients and extremes are brought to the form
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

/// A name that files and messages can hold: of a long one its beginning, and a hash of the whole.
std::string shortened(std::string name);

/// The extent that an expression says, which lies within [least, most].
Dim to_extent(const Expression& expression, std::int64_t least, std::int64_t most);

}  // namespace headrace
