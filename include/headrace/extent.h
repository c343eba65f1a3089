#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/export.h"

namespace headrace {

class Dim;

/// An extent of a shape: a number, or an integer expression of symbols that are known only at run time. What
/// is written in different ways and has one form is the same: "1 + n", "n+1" and "(2*n + 2)//2" are "(n+1)".
///
/// Questions have three answers: nothing where the symbols' values decide.
class HEADRACE_API Extent {
public:
    Extent(std::int64_t number = 0);
    /// A symbol from `least` on, which the caller has checked.
    Extent(const std::string& text, std::int64_t most, std::int64_t least = 1);
    /// A symbol within [least, most]. A text that is an expression of names is one, which lies there.
    static Extent symbol(const std::string& text, std::int64_t least = 1, std::int64_t most = INT64_MAX);
    /// A symbol of any name, also one that looks like an expression: its text has that within quotes, 'a*b'.
    static Extent named(const std::string& name, std::int64_t least = 1, std::int64_t most = INT64_MAX);
    explicit Extent(const Dim& dim);
    const Dim& dim() const { return *dim_; }

    std::optional<std::int64_t> number() const;
    bool is_open() const { return !number().has_value(); }
    std::string str() const;
    std::int64_t least() const;
    std::int64_t most() const;

    Extent operator+(const Extent& other) const;
    Extent operator-(const Extent& other) const;
    Extent operator*(const Extent& other) const;
    /// The quotient rounded down or up, and what rounding down leaves; throws for the divisor 0.
    Extent divided_down(const Extent& divisor) const;
    Extent divided_up(const Extent& divisor) const;
    Extent rest(const Extent& divisor) const;
    static Extent largest(const std::vector<Extent>& of);
    static Extent smallest(const std::vector<Extent>& of);

    /// The same form.
    bool operator==(const Extent& other) const;
    std::optional<bool> equals(const Extent& other) const;
    std::optional<bool> is_less(const Extent& other) const;

    /// Its symbols as texts have them, also those within quotients and the like.
    std::vector<std::string> symbols() const;
    /// The same, without the quotes of those that have some.
    std::vector<std::string> names() const;
    /// The names that have a value when the extent has one: "(n+1)" and "n".
    std::vector<std::string> told() const;
    /// With others in place of symbols, or of parts that a name stands for.
    Extent substituted(const std::map<std::string, Extent>& instead) const;
    /// With numbers in place of symbols; nothing where some are missing or it divides by 0.
    std::optional<std::int64_t> value(const std::map<std::string, std::int64_t>& symbols) const;
    /// A sum of numbers times products of extents that are no sums, products or numbers.
    struct Term {
        std::int64_t factor = 1;
        std::vector<Extent> of;
    };
    std::vector<Term> terms() const;

private:
    std::shared_ptr<const Dim> dim_;
};

}  // namespace headrace
