#include "llm/schema/number_range.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <vector>

namespace headrace::llm {
namespace {

constexpr std::size_t kMostDigits = 16;  // of a whole part, as in llama.cpp's numbers
constexpr std::int64_t kMostWhole = 999'999'999'999'999;

using NumberRule = std::optional<std::string>;  // none: nothing fits
using RangeEnd = NumberRange::End;

std::string join_ways(const std::vector<std::string>& ways) {
    return ways.size() == 1 ? ways.front() : fmt::format("({})", fmt::join(ways, " | "));
}

NumberRule either(const std::vector<std::string>& ways) {
    return ways.empty() ? std::nullopt : NumberRule(join_ways(ways));
}

std::string digits(int least, int most) {
    if (most <= 0) return R"("")";
    return fmt::format("[0-9]{{{},{}}}", least, most);
}

std::string zeros(int most) { return most <= 0 ? R"("")" : fmt::format(R"("0"{{0,{}}})", most); }

std::string literal(std::string_view text) { return fmt::format("\"{}\"", text); }

std::string digit_between(char from, char to) {
    return from == to ? literal(std::string(1, from)) : fmt::format("[{}-{}]", from, to);
}

bool is_all(std::string_view text, char digit) {
    return text.find_first_not_of(digit) == std::string_view::npos;
}

/// Numbers of as many digits as both have.
std::string same_digits(std::string_view from, std::string_view to) {
    if (from.empty()) return R"("")";
    const std::string_view from_rest = from.substr(1), to_rest = to.substr(1);
    const int rest = static_cast<int>(from_rest.size());
    if (rest == 0) return digit_between(from[0], to[0]);
    if (from[0] == to[0]) return literal(from.substr(0, 1)) + " " + same_digits(from_rest, to_rest);
    std::vector<std::string> ways;
    char first = from[0], last = to[0];
    if (!is_all(from_rest, '0'))
        ways.push_back(literal(std::string(1, first++)) + " " +
                       same_digits(from_rest, std::string(from_rest.size(), '9')));
    const bool ends_within = !is_all(to_rest, '9');
    if (ends_within) --last;
    if (first <= last) ways.push_back(digit_between(first, last) + " " + digits(rest, rest));
    if (ends_within)
        ways.push_back(literal(to.substr(0, 1)) + " " +
                       same_digits(std::string(to_rest.size(), '0'), to_rest));
    return join_ways(ways);
}

/// Without leading zeros. most: none, as large as numbers are here.
NumberRule whole_between(std::int64_t least, std::optional<std::int64_t> most) {
    if (most && least > *most) return std::nullopt;
    std::vector<std::string> ways;
    std::string from = std::to_string(least);
    const std::string to = most ? std::to_string(*most) : std::string(kMostDigits, '9');
    for (; from.size() < to.size(); from = "1" + std::string(from.size(), '0'))
        ways.push_back(same_digits(from, std::string(from.size(), '9')));
    ways.push_back(same_digits(from, to));
    return either(ways);
}

/// Digits behind the point that are, as a fraction, at least that or above it; at least one of them.
NumberRule fraction_above(std::string_view bound, bool is_inside, int left) {
    if (left <= 0) return std::nullopt;
    if (bound.empty() && is_inside) return digits(1, left);
    std::vector<std::string> ways;
    if (bound.empty()) {  // one of them is not 0
        for (int before = 0; before < left; ++before)
            ways.push_back(
                (before > 0 ? literal(std::string(static_cast<std::size_t>(before), '0')) + " " : "") +
                "[1-9] " + digits(0, left - before - 1));
        return either(ways);
    }
    const std::string_view rest = bound.substr(1);
    if (bound[0] < '9')
        ways.push_back(digit_between(static_cast<char>(bound[0] + 1), '9') + " " + digits(0, left - 1));
    const std::string same = literal(bound.substr(0, 1));
    if (rest.empty() && is_inside)
        ways.push_back(same + " " + digits(0, left - 1));
    else if (const NumberRule more = fraction_above(rest, is_inside, left - 1))
        ways.push_back(same + " " + *more);
    return either(ways);
}

/// The same below; digits that are left out are zeros.
NumberRule fraction_below(std::string_view bound, bool is_inside, int left) {
    if (left <= 0) return std::nullopt;
    if (bound.empty()) return is_inside ? NumberRule(R"("0" )" + zeros(left - 1)) : std::nullopt;
    std::vector<std::string> ways;
    const std::string_view rest = bound.substr(1);
    if (bound[0] > '0')
        ways.push_back(digit_between('0', static_cast<char>(bound[0] - 1)) + " " + digits(0, left - 1));
    const std::string same = literal(bound.substr(0, 1));
    if (!rest.empty()) {
        const NumberRule less = fraction_below(rest, is_inside, left - 1);
        ways.push_back(less ? fmt::format("{} ({})?", same, *less) : same);
    } else if (is_inside) {
        ways.push_back(same + " " + zeros(left - 1));
    }
    return either(ways);
}

/// Between two fractions of the same whole number, the first below the second.
NumberRule fraction_between(std::string_view least, bool has_least, std::string_view most, bool has_most,
                            int left) {
    if (left <= 0) return std::nullopt;
    const char from = least.empty() ? '0' : least[0], to = most[0];
    const std::string_view least_rest = least.empty() ? least : least.substr(1), most_rest = most.substr(1);
    std::vector<std::string> ways;
    if (from == to) {
        const NumberRule rest = fraction_between(least_rest, has_least, most_rest, has_most, left - 1);
        if (!rest) return std::nullopt;
        const bool may_end = least_rest.empty() && has_least;
        return fmt::format("{} ({}){}", literal(std::string(1, from)), *rest, may_end ? "?" : "");
    }
    const NumberRule above = fraction_above(least_rest, has_least, left - 1);
    const bool is_whole = least_rest.empty() && has_least;  // its own digit is enough
    if (above || is_whole)
        ways.push_back(literal(std::string(1, from)) +
                       (!above ? "" : fmt::format(" ({}){}", *above, is_whole ? "?" : "")));
    if (to - from > 1)
        ways.push_back(digit_between(static_cast<char>(from + 1), static_cast<char>(to - 1)) + " " +
                       digits(0, left - 1));
    const NumberRule below = fraction_below(most_rest, has_most, left - 1);
    const bool may_end = !most_rest.empty() || has_most;
    if (below || may_end)
        ways.push_back(literal(std::string(1, to)) +
                       (!below ? "" : fmt::format(" ({}){}", *below, may_end ? "?" : "")));
    return either(ways);
}

/// A whole part with what may follow the point. alone: it may also stand by itself.
void add_with_fraction(std::vector<std::string>& ways, const std::string& whole, const NumberRule& fraction,
                       bool alone) {
    if (fraction)
        ways.push_back(fmt::format(R"({} ("." {}){})", whole, *fraction, alone ? "?" : ""));
    else if (alone)
        ways.push_back(whole);
}

/// Numbers of at least 0.
NumberRule not_negative(const RangeEnd& least, const std::optional<RangeEnd>& most, int places) {
    const Decimal& from = least.value;
    const bool starts_whole = from.fraction.empty() && least.is_inside;
    std::vector<std::string> ways;
    const std::string first = literal(std::to_string(from.whole));
    if (!most) {
        add_with_fraction(ways, first, fraction_above(from.fraction, least.is_inside, places), starts_whole);
        const NumberRule more = whole_between(from.whole + 1, std::nullopt);
        add_with_fraction(ways, *more, fraction_above("", true, places), true);
        return either(ways);
    }
    const Decimal& to = most->value;
    const int order = compare(from, to);
    if (order > 0 || (order == 0 && !(least.is_inside && most->is_inside))) return std::nullopt;
    const std::string last = literal(std::to_string(to.whole));
    if (order == 0) {
        if (static_cast<int>(to.fraction.size()) > places) return std::nullopt;
        const NumberRule exact = to.fraction.empty()
                                     ? fraction_below("", true, places)
                                     : NumberRule(literal(to.fraction) + " " +
                                                  zeros(places - static_cast<int>(to.fraction.size())));
        add_with_fraction(ways, last, exact, to.fraction.empty());
    } else if (from.whole == to.whole) {
        add_with_fraction(
            ways, last,
            fraction_between(from.fraction, least.is_inside, to.fraction, most->is_inside, places),
            starts_whole);
    } else {
        add_with_fraction(ways, first, fraction_above(from.fraction, least.is_inside, places), starts_whole);
        if (const NumberRule middle = whole_between(from.whole + 1, to.whole - 1))
            add_with_fraction(ways, *middle, fraction_above("", true, places), true);
        add_with_fraction(ways, last, fraction_below(to.fraction, most->is_inside, places),
                          most->is_inside || !to.fraction.empty());
    }
    return either(ways);
}

RangeEnd without_sign(RangeEnd end) {
    end.value.is_negative = false;
    return end;
}

}  // namespace

std::optional<Decimal> decimal_of(std::string_view text) {
    Decimal number{.is_negative = text.starts_with('-')};
    if (number.is_negative) text.remove_prefix(1);
    int exponent = 0;
    if (const std::size_t mark = text.find_first_of("eE"); mark != std::string_view::npos) {
        std::string_view power = text.substr(mark + 1);
        if (power.starts_with('+')) power.remove_prefix(1);
        if (std::from_chars(power.data(), power.data() + power.size(), exponent).ec != std::errc())
            return std::nullopt;
        text = text.substr(0, mark);
    }
    constexpr int kMostExponent = 30;
    if (std::abs(exponent) > kMostExponent) return std::nullopt;
    std::string all(text);
    std::size_t point = std::min(all.find('.'), all.size());
    if (point < all.size()) all.erase(point, 1);
    for (; exponent > 0; --exponent)
        if (++point > all.size()) all += '0';
    for (; exponent < 0; ++exponent) {
        if (point == 0)
            all.insert(0, 1, '0');
        else
            --point;
    }
    number.fraction = all.substr(point);
    while (number.fraction.ends_with('0')) number.fraction.pop_back();
    const std::string whole = all.substr(0, point);
    if (!whole.empty() &&
        std::from_chars(whole.data(), whole.data() + whole.size(), number.whole).ec != std::errc())
        return std::nullopt;
    if (number.whole > kMostWhole || number.fraction.size() > kMostDigits - 1) return std::nullopt;
    if (number.is_zero()) number.is_negative = false;
    return number;
}

int compare(const Decimal& a, const Decimal& b) {
    if (a.is_negative != b.is_negative) return a.is_negative ? -1 : 1;
    int order = a.whole != b.whole ? (a.whole < b.whole ? -1 : 1) : a.fraction.compare(b.fraction);
    order = order < 0 ? -1 : order > 0 ? 1 : 0;
    return a.is_negative ? -order : order;
}

std::optional<std::string> number_rule(const NumberRange& range) {
    const RangeEnd zero;
    std::vector<std::string> ways;
    if (!range.least || range.least->value.is_negative) {
        const bool ends_below_zero = range.most && range.most->value.is_negative;
        const RangeEnd nearest = ends_below_zero ? without_sign(*range.most) : zero;
        const std::optional<RangeEnd> farthest =
            range.least ? std::optional(without_sign(*range.least)) : std::nullopt;
        const bool has_zero =
            !range.most || ends_below_zero || !range.most->value.is_zero() || range.most->is_inside;
        const RangeEnd first{nearest.value, nearest.is_inside && has_zero};  // -0 is 0
        if (const NumberRule below = not_negative(first, farthest, range.places))
            ways.push_back("\"-\" " + *below);
    }
    if (!range.most || !range.most->value.is_negative) {
        const RangeEnd first = range.least && !range.least->value.is_negative ? *range.least : zero;
        if (const NumberRule above = not_negative(first, range.most, range.places)) ways.push_back(*above);
    }
    if (ways.empty()) return std::nullopt;
    return fmt::format("({})", fmt::join(ways, " | "));
}

}  // namespace headrace::llm
