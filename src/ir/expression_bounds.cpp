#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "ir/expression_broadcast.h"
#include "ir/expression_terms.h"

namespace headrace {
namespace {

/// An end of an interval: exact within twice 64 bits, infinite beyond.
using Wide = __int128;
constexpr Wide kInfinite = Wide{1} << 100;

Wide clamped(Wide x) { return std::clamp(x, -kInfinite, kInfinite); }

bool is_infinite(Wide x) { return x <= -kInfinite || x >= kInfinite; }

Wide times(Wide a, Wide b) {
    if (a == 0 || b == 0) return 0;
    const bool is_negative = (a < 0) != (b < 0);
    if (is_infinite(a) || is_infinite(b)) return is_negative ? -kInfinite : kInfinite;
    Wide result = 0;
    if (__builtin_mul_overflow(a, b, &result)) return is_negative ? -kInfinite : kInfinite;
    return clamped(result);
}

/// The quotient by a positive divisor, rounded down.
Wide floor_quotient(Wide a, Wide b) {
    if (is_infinite(b)) return a < 0 ? -1 : 0;
    if (is_infinite(a)) return a;
    return a / b - (a % b < 0 ? 1 : 0);
}

struct Interval {
    Wide least = -kInfinite, most = kInfinite;

    static Interval of(Range r) {
        return {r.least == INT64_MIN ? -kInfinite : Wide{r.least},
                r.most == INT64_MAX ? kInfinite : Wide{r.most}};
    }
    Range range() const {
        return {static_cast<std::int64_t>(std::clamp<Wide>(least, INT64_MIN, INT64_MAX)),
                static_cast<std::int64_t>(std::clamp<Wide>(most, INT64_MIN, INT64_MAX))};
    }
    Interval operator+(const Interval& o) const {
        // Infinities of one side do not meet those of the other: both are clamped sums of like ends.
        return {is_infinite(least) || is_infinite(o.least) ? -kInfinite : clamped(least + o.least),
                is_infinite(most) || is_infinite(o.most) ? kInfinite : clamped(most + o.most)};
    }
    Interval operator*(const Interval& o) const {
        const auto [low, high] = std::minmax(
            {times(least, o.least), times(least, o.most), times(most, o.least), times(most, o.most)});
        return {low, high};
    }
    Interval hull(const Interval& o) const { return {std::min(least, o.least), std::max(most, o.most)}; }
    /// Both hold. Contradictions, which declared ranges may make, are no reason for an answer.
    Interval with(const Interval& o) const {
        const Interval both{std::max(least, o.least), std::min(most, o.most)};
        return both.least > both.most ? *this : both;
    }
    /// The bounds of the quotient, where that is an integer.
    Interval divided(Wide divisor) const {
        return {is_infinite(least) ? least : -floor_quotient(-least, divisor),
                is_infinite(most) ? most : floor_quotient(most, divisor)};
    }
};

Interval quotient(const Interval& a, const Interval& b) {
    if (b.least <= 0) return {};
    const auto [low, high] = std::minmax({floor_quotient(a.least, b.least), floor_quotient(a.least, b.most),
                                          floor_quotient(a.most, b.least), floor_quotient(a.most, b.most)});
    return {low, high};
}

constexpr int kMostSplits = 3;          // of quotients and extremes within one question
constexpr std::size_t kMostTerms = 48;  // beyond which only the plainest bounds are found

}  // namespace

/// A search for bounds: each way gives an interval that holds, and all of them hold together.
struct Bounder {
    using Atom = Expression::Atom;

    /// Term by term.
    static Interval plain(const Expression::Terms& terms) {
        Interval total{0, 0};
        for (const auto& [monomial, factor] : terms) {
            Interval term{factor, factor};
            for (const auto& atom : monomial) term = term * Interval::of(atom->range);
            total = total + term;
        }
        return total;
    }

    /// With each symbol as its least value and what exceeds that: n*m - n of n, m >= 1 is at least 0.
    static Interval shifted(const Expression& e) {
        const auto excess = [](const Atom& atom) {
            const Range r = atom.range;
            const Range rest{0, r.most == INT64_MAX ? INT64_MAX : r.most - r.least};
            // One name may have several ranges, and so several excesses: the name says which.
            return Expression::symbol(fmt::format("{} above {}", atom.text, r.least), rest) + r.least;
        };
        Expression total;
        for (const auto& [monomial, factor] : e.terms_) {
            Expression term = factor;
            for (const auto& atom : monomial) {
                const bool is_near = atom->range.least > INT32_MIN && atom->range.least < INT32_MAX;
                term = term * (is_near && atom->range.least != 0 ? excess(*atom) : Expression(atom));
            }
            total = total + term;
        }
        return plain(total.terms_);
    }

    static const Atom* find(const Expression& e, bool (*wanted)(const Atom&)) {
        for (const auto& [monomial, factor] : e.terms_)
            for (const auto& atom : monomial)
                if (wanted(*atom)) return atom.get();
        return nullptr;
    }

    /// The expression times `factor`, with `instead` for factor * atom; nothing where the atom has a power.
    static std::optional<Expression> replaced(const Expression& e, const Atom& atom,
                                              const Expression& instead, std::int64_t factor) {
        Expression total;
        for (const auto& [monomial, times] : e.terms_) {
            Expression term = times;
            bool has_atom = false;
            for (const auto& name : monomial) {
                const bool is_it = name->text == atom.text;
                if (is_it && has_atom) return std::nullopt;
                has_atom = has_atom || is_it;
                term = term * (is_it ? instead : Expression(name));
            }
            total = total + (has_atom ? term : term * factor);
        }
        return total;
    }

    /// d * (x // d) is x less a rest below d.
    static std::optional<Interval> without_quotient(const Expression& e, int splits) {
        const Atom* atom = find(e, [](const Atom& a) {
            const auto divisor = a.kind == Atom::Kind::quotient ? a.of[1].number() : std::nullopt;
            return divisor && *divisor > 0 && *divisor < INT32_MAX;
        });
        if (!atom) return std::nullopt;
        const std::int64_t divisor = *atom->of[1].number();
        const Expression rest = Expression::symbol("rest of " + atom->text, {0, divisor - 1});
        const auto whole = replaced(e, *atom, atom->of[0] - rest, divisor);
        if (!whole) return std::nullopt;
        return of(*whole, splits - 1).divided(divisor);
    }

    /// An extreme is one of its operands, and none exceeds it.
    static std::optional<Interval> without_extreme(const Expression& e, int splits) {
        const Atom* atom = find(
            e, [](const Atom& a) { return a.kind == Atom::Kind::largest || a.kind == Atom::Kind::least; });
        if (!atom || atom->of.size() > 4) return std::nullopt;
        const auto alone =
            e.terms_.end() == std::find_if(e.terms_.begin(), e.terms_.end(), [&](const auto& t) {
                return t.first.size() > 1 && std::any_of(t.first.begin(), t.first.end(), [&](const auto& a) {
                           return a->text == atom->text;
                       });
            });
        bool grows = false;
        for (const auto& [monomial, factor] : e.terms_)
            if (monomial.size() == 1 && monomial[0]->text == atom->text)
                grows = (factor > 0) == (atom->kind == Atom::Kind::largest);
        std::optional<Interval> all;
        for (const Expression& operand : atom->of) {
            const auto one = replaced(e, *atom, operand, 1);
            if (!one) return std::nullopt;
            const Interval next = of(*one, splits - 1);
            if (!all)
                all = next;
            else if (!alone)
                all = all->hull(next);
            else if (grows)
                all = Interval{std::max(all->least, next.least), std::max(all->most, next.most)};
            else
                all = Interval{std::min(all->least, next.least), std::min(all->most, next.most)};
        }
        return all;
    }

    static Interval of(const Expression& e, int splits) {
        Interval known = plain(e.terms_);
        const std::size_t symbolic = e.terms_.size() - (e.terms_.contains({}) ? 1 : 0);
        if (symbolic < 2 || e.terms_.size() > kMostTerms || known.least == known.most) return known;
        known = known.with(shifted(e));
        if (splits == 0) return known;
        if (const auto closer = without_extreme(e, splits)) known = known.with(*closer);
        if (const auto closer = without_quotient(e, splits)) known = known.with(*closer);
        return known;
    }

    /// Whether it is what `part` and others broadcast to: their largest times their least, where neither left
    /// it out though it may be 0.
    static bool is_broadcast(const Expression& whole, const Expression& part) {
        if (whole == part) return true;
        if (whole.terms_.size() != 1 || whole.terms_.begin()->second != 1) return false;
        const Atom *largest = find(whole, is_largest), *least = find(whole, is_least);
        if (!largest || whole.terms_.begin()->first.size() != (least ? 2U : 1U)) return false;
        return std::ranges::any_of(largest->of, [&](const Expression& one) {
            const auto exceeds = [&](const Expression& low) { return one.is_at_least(low) == Answer::yes; };
            return is_broadcast(one, part) && (least ? std::ranges::any_of(least->of, exceeds) : exceeds(1));
        });
    }

    static bool is_largest(const Atom& atom) { return atom.kind == Atom::Kind::largest; }
    static bool is_least(const Atom& atom) { return atom.kind == Atom::Kind::least; }
};

Expression broadcast(const Expression& a, const Expression& b) {
    if (Bounder::is_broadcast(a, b)) return a;
    if (Bounder::is_broadcast(b, a)) return b;
    // One that is 0 prevails over a 1.
    return Expression::largest({a, b}) * Expression::least({a, b, 1});
}

Range Expression::Bounds::of_atom(Atom::Kind kind, const std::vector<Expression>& of) {
    const auto interval = [](const Expression& e) { return Bounder::of(e, 1); };
    if (kind == Atom::Kind::quotient) return quotient(interval(of[0]), interval(of[1])).range();
    Interval total = interval(of[0]);
    for (const Expression& e : of) {
        const Interval next = interval(e);
        const bool largest = kind == Atom::Kind::largest;
        total = largest ? Interval{std::max(total.least, next.least), std::max(total.most, next.most)}
                        : Interval{std::min(total.least, next.least), std::min(total.most, next.most)};
    }
    return total.range();
}

Range Expression::Bounds::of(const Expression& expression) {
    return Bounder::of(expression, kMostSplits).range();
}

Range Expression::range() const { return Bounds::of(*this); }

Answer Expression::equals(const Expression& other) const {
    if (*this == other) return Answer::yes;
    const Expression difference = *this - other;
    const Range range = difference.range();
    if (range == Range{0, 0}) return Answer::yes;
    if (range.least > 0 || range.most < 0) return Answer::no;
    std::int64_t common = 0, added = 0;
    for (const auto& [monomial, factor] : difference.terms_)
        if (monomial.empty())
            added = factor;
        else
            common = std::gcd(common, factor == INT64_MIN ? 1 : factor);
    return common != 0 && added != INT64_MIN && added % common != 0 ? Answer::no : Answer::unknown;
}

Answer Expression::is_less(const Expression& other) const {
    const Range range = (other - *this).range();
    return range.least > 0 ? Answer::yes : range.most <= 0 ? Answer::no : Answer::unknown;
}

Answer Expression::is_at_least(const Expression& other) const {
    const Answer less = is_less(other);
    return less == Answer::yes ? Answer::no : less == Answer::no ? Answer::yes : Answer::unknown;
}

}  // namespace headrace
