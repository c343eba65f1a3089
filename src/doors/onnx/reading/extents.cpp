#include "doors/onnx/reading/extents.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string>

#include "doors/onnx/reading/refused.h"

namespace headrace::onnx {
namespace {

/// Arithmetic that no expression can hold makes a name of its own, which nothing would ever give a value.
Dim as_extent(const Expression& result, std::string_view op, std::span<const Dim> of) {
    if (const auto number = result.number()) return *number;
    std::set<std::string> given;
    for (const Dim& d : of)
        for (std::string& name : d.expression().names()) given.insert(std::move(name));
    for (const std::string& name : result.names())
        if (!given.contains(name))
            throw Refused(
                fmt::format("{:.80} {} {:.80}: an extent becomes a sum of more than 64 terms, 16 factors, "
                            "512 characters or numbers of 64 bits",
                            of.front().str(), op, of.back().str()));
    return Dim::of(result, Range{});
}

Dim as_extent(const Expression& result, std::string_view op, const Dim& a, const Dim& b) {
    return as_extent(result, op, std::array{a, b});
}

bool are_numbers(const Dim& a, const Dim& b) { return !a.is_symbolic() && !b.is_symbolic(); }

[[noreturn]] void overflow(const Dim& a, std::string_view op, const Dim& b) {
    throw Undecided(fmt::format("{} {} {} in 64 bits", a.str(), op, b.str()));
}

void check_divisor(const Dim& a, const Dim& b) {
    invalid_if(b.is(0), "{} is divided by 0", a.str());
    if (b.is(-1) && a.is(std::numeric_limits<std::int64_t>::min())) overflow(a, "/", b);
}

std::int64_t floor_of(std::int64_t a, std::int64_t b) {
    const std::int64_t quotient = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

template <class Choose, class Whole>
Dim extreme(const std::vector<Dim>& of, std::string_view op, Choose choose, Whole whole) {
    if (std::ranges::none_of(of, &Dim::is_symbolic)) return choose(numbers_of(of));
    std::vector<Expression> list;
    for (const Dim& d : of) list.push_back(d.expression());
    return as_extent(whole(std::move(list)), op, of);
}

}  // namespace

Dim operator+(const Dim& a, const Dim& b) {
    if (!are_numbers(a, b)) return as_extent(a.expression() + b.expression(), "+", a, b);
    std::int64_t result = 0;
    if (__builtin_add_overflow(a.size(), b.size(), &result)) overflow(a, "+", b);
    return result;
}

Dim operator-(const Dim& a, const Dim& b) {
    if (!are_numbers(a, b)) return as_extent(a.expression() - b.expression(), "-", a, b);
    std::int64_t result = 0;
    if (__builtin_sub_overflow(a.size(), b.size(), &result)) overflow(a, "-", b);
    return result;
}

Dim operator*(const Dim& a, const Dim& b) {
    if (!are_numbers(a, b)) return as_extent(a.expression() * b.expression(), "*", a, b);
    std::int64_t result = 0;
    if (__builtin_mul_overflow(a.size(), b.size(), &result)) overflow(a, "*", b);
    return result;
}

Dim divided_down(const Dim& a, const Dim& b) {
    check_divisor(a, b);
    if (are_numbers(a, b)) return floor_of(a.size(), b.size());
    return as_extent(a.expression() / b.expression(), "//", a, b);
}

Dim divided_up(const Dim& a, const Dim& b) {
    check_divisor(a, b);
    if (are_numbers(a, b)) return floor_of(a.size(), b.size()) + (a.size() % b.size() != 0 ? 1 : 0);
    return as_extent(a.expression().divided_up(b.expression()), "^/", a, b);
}

Dim rest(const Dim& a, const Dim& b) {
    check_divisor(a, b);
    if (are_numbers(a, b)) return a.size() - floor_of(a.size(), b.size()) * b.size();
    return as_extent(a.expression() % b.expression(), "%", a, b);
}

Dim largest(const std::vector<Dim>& of) {
    return extreme(
        of, "max", [](const auto& n) { return std::ranges::max(n); }, &Expression::largest);
}

Dim smallest(const std::vector<Dim>& of) {
    return extreme(
        of, "min", [](const auto& n) { return std::ranges::min(n); }, &Expression::least);
}

bool is_same(const Dim& a, const Dim& b) { return equals(a, b) == Answer::yes; }

bool is_less(const Dim& a, const Dim& b) {
    const Answer answer = is_at_least(a, b);
    if (answer == Answer::unknown) throw Undecided(fmt::format("{} < {}", a.str(), b.str()));
    return answer == Answer::no;
}

bool is_equal(const Dim& a, const Dim& b) {
    const Answer answer = equals(a, b);
    if (answer == Answer::unknown) throw Undecided(fmt::format("{} = {}", a.str(), b.str()));
    return answer == Answer::yes;
}

Dim less(const Dim& a, const Dim& b) {
    const Answer answer = is_at_least(a, b);
    if (answer != Answer::unknown) return answer == Answer::no ? 1 : 0;
    return smallest({1, largest({0, b - a})});
}

Dim equal(const Dim& a, const Dim& b) {
    const Answer answer = equals(a, b);
    if (answer != Answer::unknown) return answer == Answer::yes ? 1 : 0;
    return Dim(1) - smallest({1, largest({a - b, b - a})});
}

Dim either(const Dim& condition, const Dim& a, const Dim& b) {
    if (is_same(condition, 1)) return a;
    if (is_same(condition, 0)) return b;
    return condition.is_symbolic() ? b + condition * (a - b) : a;
}

Dim product_of(std::span<const Dim> extents) {
    Dim total = 1;
    for (const Dim& d : extents) total = total * d;
    return total;
}

bool is_open(const Shape& shape) { return std::ranges::any_of(shape, &Dim::is_symbolic); }

std::vector<std::int64_t> numbers_of(const Shape& shape) {
    std::vector<std::int64_t> numbers;
    numbers.reserve(shape.size());
    for (const Dim& d : shape) numbers.push_back(d.size());
    return numbers;
}

std::string text_of(const Shape& shape) { return str(shape); }

std::string shortened_text(std::string text) {
    if (text.size() > 100) text = text.substr(0, 97) + "...";
    return text;
}

// --- exact quotients

namespace {

using Monomial = std::vector<std::string>;  // sorted
using Polynomial = std::map<Monomial, std::int64_t>;
constexpr int kMostSteps = 64;

Polynomial polynomial_of(const Dim& d, std::map<std::string, Expression>& atoms) {
    Polynomial terms;
    for (const auto& [factor, parts] : d.expression().terms()) {
        Monomial names;
        for (const Expression& part : parts) atoms.emplace(names.emplace_back(part.str()), part);
        std::ranges::sort(names);
        if (factor != 0) terms[names] = factor;
    }
    return terms;
}

/// Graded, then by the symbols and how often they come: the order of products is that of their factors.
bool comes_before(const Monomial& a, const Monomial& b) {
    if (a.size() != b.size()) return a.size() < b.size();
    const auto counted = [](const Monomial& m) {
        std::vector<std::pair<std::string, std::ptrdiff_t>> list;
        for (const std::string& name : m)
            if (list.empty() || list.back().first != name)
                list.emplace_back(name, std::ranges::count(m, name));
        return list;
    };
    return counted(a) < counted(b);
}

const Monomial& leading(const Polynomial& p) {
    return std::ranges::max_element(
               p, [](const auto& a, const auto& b) { return comes_before(a.first, b.first); })
        ->first;
}

std::optional<Monomial> without(Monomial whole, const Monomial& part) {
    for (const std::string& name : part) {
        const auto at = std::ranges::find(whole, name);
        if (at == whole.end()) return std::nullopt;
        whole.erase(at);
    }
    return whole;
}

Expression sum_of(const Polynomial& p, const std::map<std::string, Expression>& atoms) {
    Expression total(0);
    for (const auto& [names, factor] : p) {
        Expression term(factor);
        for (const std::string& name : names) term = atoms.at(name) * term;
        total = total + term;
    }
    return total;
}

/// rest -= factor * monomial * divisor; false where 64 bits do not hold it.
bool subtract(Polynomial& rest, const Polynomial& divisor, const Monomial& monomial, std::int64_t factor) {
    for (const auto& [names, times] : divisor) {
        Monomial joined = names;
        joined.insert(joined.end(), monomial.begin(), monomial.end());
        std::ranges::sort(joined);
        std::int64_t taken = 0, &left = rest[joined];
        if (__builtin_mul_overflow(factor, times, &taken) || __builtin_sub_overflow(left, taken, &left))
            return false;
        if (left == 0) rest.erase(joined);
    }
    return true;
}

}  // namespace

std::optional<Dim> exact_quotient(const Dim& a, const Dim& b) {
    if (are_numbers(a, b)) {
        if (b.is(0) || (b.is(-1) && a.is(std::numeric_limits<std::int64_t>::min()))) return std::nullopt;
        return a.size() % b.size() == 0 ? std::optional<Dim>(a.size() / b.size()) : std::nullopt;
    }
    std::map<std::string, Expression> atoms;
    Polynomial rest = polynomial_of(a, atoms), quotient;
    const Polynomial divisor = polynomial_of(b, atoms);
    if (divisor.empty()) return std::nullopt;
    const Monomial lead = leading(divisor);
    for (int step = 0; step < kMostSteps; ++step) {
        if (rest.empty()) return as_extent(sum_of(quotient, atoms), "/", a, b);
        const Monomial first = leading(rest);
        const auto monomial = without(first, lead);
        const std::int64_t own = rest.at(first), by = divisor.at(lead);
        if (!monomial || own % by != 0) return std::nullopt;
        quotient[*monomial] += own / by;
        if (!subtract(rest, divisor, *monomial, own / by)) return std::nullopt;
    }
    return std::nullopt;
}

}  // namespace headrace::onnx
