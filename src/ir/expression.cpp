#include "ir/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/expression_terms.h"
#include "ir/expression_words.h"

namespace headrace {
namespace {

constexpr std::size_t kMostBytes = 4096;  // of a name

}  // namespace

/// An expression doubles with every op that names its operand's extent twice: without a limit, 40 nodes would
/// need a terabyte. The hash (FNV-1a) is the same in every build, since files hold the names.
std::string shortened(std::string name) {
    constexpr std::size_t kKept = 64;
    if (name.size() <= kMostBytes) return name;
    std::uint64_t hash = 0xCBF29CE484222325u;
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
    std::size_t end = kKept;
    while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80)
        --end;  // keep code points whole
    return fmt::format("{}...#{:016x}", std::string_view(name).substr(0, end), hash);
}

bool Expression::Less::operator()(const Monomial& a, const Monomial& b) const {
    if (a.size() != b.size()) return a.size() > b.size();
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                        [](const AtomPtr& x, const AtomPtr& y) { return x->text < y->text; });
}

struct Expression::Rules {
    // A detector adds up what it has found of each class, of which there are often 90.
    static constexpr std::size_t kMostTerms = 200, kMostNames = 16;

    static bool add(Terms& terms, const Monomial& monomial, std::int64_t factor) {
        if (factor == 0) return true;
        const auto [it, fresh] = terms.try_emplace(monomial, 0);
        if (__builtin_add_overflow(it->second, factor, &it->second)) return false;
        if (it->second == 0) terms.erase(it);
        return terms.size() <= kMostTerms;
    }

    static std::optional<Terms> sum(const Terms& a, const Terms& b, std::int64_t times) {
        Terms terms = a;
        for (const auto& [monomial, factor] : b) {
            std::int64_t scaled = 0;
            if (__builtin_mul_overflow(factor, times, &scaled) || !add(terms, monomial, scaled))
                return std::nullopt;
        }
        return terms;
    }

    static std::optional<Terms> product(const Terms& a, const Terms& b) {
        Terms terms;
        for (const auto& [left, factor] : a)
            for (const auto& [right, times] : b) {
                Monomial both;
                std::merge(left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(both),
                           [](const AtomPtr& x, const AtomPtr& y) { return x->text < y->text; });
                std::int64_t scaled = 0;
                if (both.size() > kMostNames || __builtin_mul_overflow(factor, times, &scaled) ||
                    !add(terms, both, scaled))
                    return std::nullopt;
            }
        return terms;
    }

    /// The result, or a name of its own.
    static Expression made(std::optional<Terms> terms, const Expression& a, std::string_view op,
                           const Expression& b) {
        if (terms) return Expression(std::move(*terms));
        const auto operand = [](const Expression& e) {
            const std::string text = part(e);  // a sign is the number's
            return text.starts_with('-') ? "(" + text + ")" : text;
        };
        return symbol(shortened(fmt::format("({}{}{})", operand(a), op, operand(b))), Range{});
    }

    static Expression apart(Atom::Kind kind, std::vector<Expression> of) {
        std::string text;
        if (kind == Atom::Kind::quotient) {
            const Expression &dividend = of[0], &divisor = of[1];
            const bool is_plain =
                divisor.number() || divisor.terms_.size() > 1 ||
                (divisor.terms_.begin()->second == 1 && divisor.terms_.begin()->first.size() == 1);
            const auto number = dividend.number();
            // A sign before a quotient is the quotient's.
            const std::string above = number && *number < 0 ? "(" + dividend.str() + ")" : part(dividend);
            text = is_plain ? fmt::format("({}//{})", above, part(divisor))
                            : fmt::format("({}//({}))", above, part(divisor));
        } else {
            text = kind == Atom::Kind::largest ? "Max(" : "Min(";
            for (std::size_t i = 0; i < of.size(); ++i) text.append(i ? ", " : "").append(part(of[i]));
            text += ")";
        }
        const Range range = Bounds::of_atom(kind, of);
        if (text.size() > kMostBytes) return symbol(shortened(std::move(text)), range);
        return Expression(std::make_shared<const Atom>(Atom{std::move(text), kind, std::move(of), range}));
    }

    static std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
        return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
    }

    /// Without the names of `part`, or nothing where some are missing.
    static std::optional<Monomial> without(const Monomial& whole, const Monomial& part) {
        Monomial rest;
        std::size_t taken = 0;
        for (const AtomPtr& atom : whole)
            if (taken < part.size() && part[taken]->text == atom->text)
                ++taken;
            else
                rest.push_back(atom);
        if (taken < part.size()) return std::nullopt;
        return rest;
    }

    /// Whole multiples of factor * monomial leave the quotient: (k*q + r) // k = q + r // k.
    static std::pair<Terms, Terms> split(const Terms& dividend, const Monomial& monomial,
                                         std::int64_t factor) {
        Terms whole, rest;
        for (const auto& [names, times] : dividend) {
            const auto others = without(names, monomial);
            const std::int64_t count = others ? floor_quotient(times, factor) : 0;
            if (count != 0) whole.emplace(*others, count);
            if (times != count * factor) rest.emplace(names, times - count * factor);
        }
        return {std::move(whole), std::move(rest)};
    }

    /// dividend // divisor of a number above 1.
    static Expression by_number(const Terms& dividend, std::int64_t divisor) {
        auto [whole, rest] = split(dividend, {}, divisor);
        std::int64_t common = divisor, added = 0;
        for (const auto& [names, times] : rest)
            if (names.empty())
                added = times;
            else
                common = std::gcd(common, times);
        // What is added is less than the divisor, and so is the rest of it beside whole multiples of
        // `common`.
        rest.erase(Monomial{});
        if (rest.empty()) return Expression(std::move(whole));
        for (auto& [names, times] : rest) times /= common;
        added /= common;
        divisor /= common;
        if (added != 0) rest.emplace(Monomial{}, added);
        if (divisor == 1) return Expression(std::move(whole)) + Expression(std::move(rest));
        return Expression(std::move(whole)) + of_quotient(Expression(std::move(rest)), divisor);
    }

    /// (x // a + c) // b = (x + a*c) // (a*b)
    static Expression of_quotient(const Expression& rest, std::int64_t divisor) {
        const auto& [names, times] = *rest.terms_.begin();
        const bool is_atom = names.size() == 1 && times == 1 && names[0]->kind == Atom::Kind::quotient;
        const std::int64_t added = rest.terms_.contains({}) ? rest.terms_.at({}) : 0;
        if (is_atom && rest.terms_.size() == (added ? 2U : 1U)) {
            const auto inner = names[0]->of[1].number();
            std::int64_t shift = 0, both = 0;
            if (inner && *inner > 0 && !__builtin_mul_overflow(*inner, added, &shift) &&
                !__builtin_mul_overflow(*inner, divisor, &both))
                return (names[0]->of[0] + shift) / both;
        }
        return apart(Atom::Kind::quotient, {rest, divisor});
    }

    static Expression quotient(const Expression& a, const Expression& b) {
        if (const auto divisor = b.number()) {
            if (*divisor == INT64_MIN || *divisor == 0) return made(std::nullopt, a, "//", b);
            if (*divisor < 0) return (Expression(0) - a) / -*divisor;
            return *divisor == 1 ? a : by_number(a.terms_, *divisor);
        }
        if (a == b) return 1;
        if (b.terms_.size() != 1) return apart(Atom::Kind::quotient, {a, b});
        const auto& [names, factor] = *b.terms_.begin();
        if (factor < 0) return apart(Atom::Kind::quotient, {a, b});
        auto [whole, rest] = split(a.terms_, names, factor);
        const Expression quotient{std::move(whole)};
        return rest.empty() ? quotient
                            : quotient + apart(Atom::Kind::quotient, {Expression(std::move(rest)), b});
    }

    /// Without those that another one exceeds for all values.
    static Expression extreme(Atom::Kind kind, std::vector<Expression> given) {
        std::vector<Expression> kept;
        for (Expression& next : given) {
            const auto yields = [&](const Expression& loser, const Expression& winner) {
                const Answer answer =
                    kind == Atom::Kind::largest ? winner.is_at_least(loser) : loser.is_at_least(winner);
                return answer == Answer::yes;
            };
            if (std::ranges::any_of(kept, [&](const Expression& other) { return yields(next, other); }))
                continue;
            std::erase_if(kept, [&](const Expression& other) { return yields(other, next); });
            kept.push_back(std::move(next));
        }
        if (kept.size() == 1) return kept[0];
        std::sort(kept.begin(), kept.end(), [](const auto& a, const auto& b) { return a.str() < b.str(); });
        return apart(kind, std::move(kept));
    }

    static Expression remade(const Atom& atom, std::vector<Expression> of) {
        return atom.kind == Atom::Kind::quotient ? of[0] / of[1] : extreme(atom.kind, std::move(of));
    }

    /// As it stands in a sum or product; a name by itself stands as it is.
    static std::string in_sum(const Atom& atom) {
        const bool is_apart =
            atom.kind != Atom::Kind::name || atom.text.ends_with(')') || atom.text.ends_with('\'');
        return is_apart || is_word(atom.text) ? atom.text : quoted(atom.text);
    }

    /// As an operand of a function or quotient.
    static std::string part(const Expression& e) {
        const Terms& terms = e.terms_;
        const bool is_atom =
            terms.size() == 1 && terms.begin()->first.size() == 1 && terms.begin()->second == 1;
        return is_atom ? in_sum(*terms.begin()->first[0]) : e.str();
    }

    static std::string str(const Monomial& monomial, std::int64_t factor) {
        std::string text = monomial.empty() || (factor != 1 && factor != -1) ? std::to_string(factor)
                           : factor == -1                                    ? "-"
                                                                             : "";
        bool follows = !monomial.empty() && factor != 1 && factor != -1;
        for (const AtomPtr& atom : monomial) {
            text.append(follows ? "*" : "").append(in_sum(*atom));
            follows = true;
        }
        return text;
    }
};

Expression::Expression(std::int64_t number) {
    if (number != 0) terms_.emplace(Monomial{}, number);
}

Expression::Expression(AtomPtr atom) { terms_.emplace(Monomial{std::move(atom)}, 1); }

Expression Expression::symbol(std::string text, Range range) {
    return Expression(std::make_shared<const Atom>(Atom{std::move(text), Atom::Kind::name, {}, range}));
}

Expression Expression::named(std::string_view name, Range range) {
    return symbol(shortened(spelled(shortened(std::string(name)))), range);
}

std::string Expression::str() const {
    if (terms_.empty()) return "0";
    const auto& [first, factor] = *terms_.begin();
    if (terms_.size() == 1) {
        if (first.size() == 1 && factor == 1) return first[0]->text;
        const std::string text = Rules::str(first, factor);
        return factor < 0 && !first.empty() ? "(" + text + ")" : text;
    }
    std::string text = "(";
    for (const auto& [names, times] : terms_) {
        std::string term = Rules::str(names, times);
        if (text.size() > 1) text += times < 0 ? " - " : "+";
        text += text.size() > 1 && times < 0 ? term.substr(1) : term;
    }
    return text + ")";
}

std::optional<std::int64_t> Expression::number() const {
    if (terms_.empty()) return 0;
    if (terms_.size() > 1 || !terms_.begin()->first.empty()) return std::nullopt;
    return terms_.begin()->second;
}

Expression Expression::operator+(const Expression& other) const {
    return Rules::made(Rules::sum(terms_, other.terms_, 1), *this, "+", other);
}

Expression Expression::operator-(const Expression& other) const {
    return Rules::made(Rules::sum(terms_, other.terms_, -1), *this, " - ", other);
}

Expression Expression::operator*(const Expression& other) const {
    return Rules::made(Rules::product(terms_, other.terms_), *this, "*", other);
}

Expression Expression::operator/(const Expression& divisor) const { return Rules::quotient(*this, divisor); }

Expression Expression::operator%(const Expression& divisor) const {
    return *this - *this / divisor * divisor;
}

Expression Expression::divided_up(const Expression& divisor) const {
    if (divisor.range().least > 0) return (*this + divisor - 1) / divisor;
    return Expression(0) - (Expression(0) - *this) / divisor;
}

Expression Expression::scaled(double scale) const {
    constexpr int kBits = 20;  // of a factor and of a divisor with which every extent's product is exact
    const double factor = std::ldexp(scale, kBits);
    if (factor != std::floor(factor) || factor > std::ldexp(1, 2 * kBits))
        return symbol(fmt::format("floor({}*{})", Rules::part(*this), scale),
                      range().least < 0 ? Range{} : kAnyExtent);
    return *this * static_cast<std::int64_t>(factor) / (std::int64_t{1} << kBits);
}

Expression Expression::largest(std::vector<Expression> of) {
    return Rules::extreme(Atom::Kind::largest, std::move(of));
}

Expression Expression::least(std::vector<Expression> of) {
    return Rules::extreme(Atom::Kind::least, std::move(of));
}

bool Expression::operator==(const Expression& other) const { return str() == other.str(); }

std::vector<Expression::Term> Expression::terms() const {
    std::vector<Term> list;
    for (const auto& [names, factor] : terms_) {
        list.push_back({factor, {}});
        for (const AtomPtr& atom : names) list.back().of.push_back(Expression(atom));
    }
    return list;
}

std::vector<std::string> Expression::names() const {
    std::vector<std::string> found;
    for (const auto& [name, range] : symbols()) found.push_back(name);
    return found;
}

std::map<std::string, Range> Expression::symbols() const {
    std::map<std::string, Range> found;
    for (const auto& [names, factor] : terms_)
        for (const AtomPtr& atom : names) {
            if (atom->kind == Atom::Kind::name) found.emplace(atom->text, atom->range);
            for (const Expression& part : atom->of) found.merge(part.symbols());
        }
    return found;
}

Expression Expression::substituted(const Find& find) const {
    Expression total;
    for (const auto& [names, factor] : terms_) {
        Expression term = factor;
        for (const AtomPtr& atom : names) {
            if (auto instead = find(atom->text)) {
                term = term * *instead;
                continue;
            }
            std::vector<Expression> of;
            for (const Expression& part : atom->of) of.push_back(part.substituted(find));
            term = term * (of.empty() ? Expression(atom) : Rules::remade(*atom, std::move(of)));
        }
        total = total + term;
    }
    return total;
}

std::optional<Expression::Line> Expression::line() const {
    const std::int64_t offset = terms_.contains({}) ? terms_.at({}) : 0;
    if (terms_.size() != (offset ? 2U : 1U)) return std::nullopt;
    const auto& [names, factor] = *terms_.begin();
    if (names.size() != 1 || names[0]->kind != Atom::Kind::name) return std::nullopt;
    return Line{names[0]->text, factor, offset};
}

}  // namespace headrace
