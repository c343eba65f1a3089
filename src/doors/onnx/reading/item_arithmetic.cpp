#include "doors/onnx/reading/item_arithmetic.h"

#include <map>
#include <numeric>

#include "doors/onnx/reading/extents.h"
#include "doors/onnx/reading/refused.h"

namespace headrace::onnx {
namespace {

Dim negative(const Dim& d) { return Dim(0) - d; }

void check_asked(const Item& item) {
    if (item.told) throw Undecided("a number that is fed");
}

/// With a divisor of more than 0, and without common factors as far as they are plain.
Item reduced(Dim above, Dim below) {
    // An open divisor that may be 0 counts as positive: nothing is divided by 0.
    const bool is_positive = below.is_symbolic() ? below.min_size() >= 0 : below.size() > 0;
    if (!is_positive && is_less(below, 1)) {
        above = negative(above);
        below = negative(below);
    }
    if (below.is(1)) return above;
    if (!above.is_symbolic() && !below.is_symbolic()) {
        const std::int64_t common = std::gcd(above.size(), below.size());
        return {above.size() / common, below.size() / common};
    }
    if (const auto whole = exact_quotient(above, below)) return *whole;
    if (below.is_symbolic()) return {std::move(above), std::move(below)};
    std::int64_t common = below.size();
    for (const auto& term : above.expression().terms()) common = std::gcd(common, term.factor);
    return {divided_down(above, common), below.size() / common};
}

Item negated(const Item& a) { return {negative(a.above), a.below}; }

Item extreme_of(const Item& a, const Item& b, Dim (*choose)(const std::vector<Dim>&)) {
    return reduced(choose({a.above * b.below, b.above * a.below}), a.below * b.below);
}

Item largest_item(const Item& a, const Item& b) { return extreme_of(a, b, &largest); }
Item smallest_item(const Item& a, const Item& b) { return extreme_of(a, b, &smallest); }

/// Integers' quotient, towards zero.
Item whole_quotient(const Item& a, const Item& b) {
    if (const auto exact = exact_quotient(a.above, b.above)) return *exact;
    return toward_zero(reduced(a.above, b.above));
}

/// The remainder with the divisor's sign.
Item whole_rest(const Item& a, const Item& b) {
    if (b.above.is_symbolic() && b.above.min_size() < 1)
        throw Undecided(fmt::format("{} % {}", a.str(), b.str()));
    return rest(a.above, b.above);
}

Item truncated_rest(const Item& a, const Item& b) {
    return difference_of(a, product_of(whole_quotient(a, b), b));
}

/// Over one divisor.
template <Dim (*Ask)(const Dim&, const Dim&)>
Item compared(const Item& a, const Item& b) {
    return Ask(a.above * b.below, b.above * a.below);
}

Item inverted(const Item& a) { return Dim(1) - a.above; }
Item greater_item(const Item& a, const Item& b) { return compared<less>(b, a); }
Item both(const Item& a, const Item& b) { return either_of(a, b, 0); }
Item any(const Item& a, const Item& b) { return either_of(a, 1, b); }

/// Halves go to the even one: only where there are none.
Item nearest(const Item& a) {
    if (a.below.is(1)) return a;
    if (!a.below.is_symbolic() && a.below.size() % 2 == 1)
        return divided_down(Dim(2) * a.above + a.below, Dim(2) * a.below);
    throw Undecided(fmt::format("the integer next to {}", a.str()));
}

/// Small whole powers.
Item power(const Item& a, const Item& b) {
    if (!b.is_number() || !b.is_whole() || b.above.size() < 0 || b.above.size() > 3)
        throw Undecided(fmt::format("{} to the power of {}", a.str(), b.str()));
    Item total = 1;
    for (std::int64_t i = 0; i < b.above.size(); ++i) total = product_of(total, a);
    return total;
}

BinaryItem asking(Item (*function)(const Item&, const Item&)) {
    return [function](const Item& a, const Item& b) {
        check_asked(a);
        check_asked(b);
        return function(a, b);
    };
}

UnaryItem asking(Item (*function)(const Item&)) {
    return [function](const Item& a) {
        check_asked(a);
        return function(a);
    };
}

}  // namespace

Item sum_of(const Item& a, const Item& b) {
    return reduced(a.above * b.below + b.above * a.below, a.below * b.below);
}
Item difference_of(const Item& a, const Item& b) { return sum_of(a, negated(b)); }
Item product_of(const Item& a, const Item& b) { return reduced(a.above * b.above, a.below * b.below); }
Item quotient_of(const Item& a, const Item& b) {
    if (b.above.is(0)) throw Undecided(fmt::format("{} / 0", a.str()));
    return reduced(a.above * b.below, a.below * b.above);
}

Dim ceiling_of(const Item& a) { return divided_up(a.above, a.below); }

Dim toward_zero(const Item& a) {
    const Answer answer = is_at_least(a.above, 0);
    if (answer == Answer::yes) return divided_down(a.above, a.below);
    if (answer == Answer::no) return divided_up(a.above, a.below);
    return largest({divided_down(a.above, a.below), 0}) + smallest({divided_up(a.above, a.below), 0});
}

Item either_of(const Item& condition, const Item& a, const Item& b) {
    check_asked(condition);
    if (is_same(condition.above, 1)) return a;
    if (is_same(condition.above, 0)) return b;
    if (!condition.above.is_symbolic()) return a;
    check_asked(a);
    check_asked(b);
    return sum_of(b, product_of(condition, difference_of(a, b)));
}

BinaryItem binary_of_items(std::string_view op, bool is_float) {
    static const std::map<std::string_view, Item (*)(const Item&, const Item&)> kFunctions{
        {"add", &sum_of},
        {"sub", &difference_of},
        {"mul", &product_of},
        {"min", &smallest_item},
        {"max", &largest_item},
        {"pow", &power},
        {"equal", &compared<equal>},
        {"lesser", &compared<less>},
        {"greater", &greater_item},
        {"lesser_or_equal", [](const Item& a, const Item& b) { return inverted(greater_item(a, b)); }},
        {"greater_or_equal", [](const Item& a, const Item& b) { return inverted(compared<less>(a, b)); }},
        {"not_equal", [](const Item& a, const Item& b) { return inverted(compared<equal>(a, b)); }},
        {"logical_and", &both},
        {"logical_or", &any},
        {"logical_xor", [](const Item& a, const Item& b) { return either_of(a, inverted(b), b); }},
    };
    if (op == "div") return asking(is_float ? &quotient_of : &whole_quotient);
    if (!is_float && op == "remainder") return asking(&whole_rest);
    if (!is_float && op == "fmod") return asking(&truncated_rest);
    const auto found = kFunctions.find(op);
    return found == kFunctions.end() ? BinaryItem() : asking(found->second);
}

UnaryItem unary_of_items(std::string_view op) {
    static const std::map<std::string_view, Item (*)(const Item&)> kFunctions{
        {"neg", &negated},
        {"abs", [](const Item& a) { return largest_item(a, negated(a)); }},
        {"sign",
         [](const Item& a) {
             return Item(largest({-1, smallest({1, a.above})}));
         }},
        {"logical_not", &inverted},
        {"floor", [](const Item& a) { return Item(divided_down(a.above, a.below)); }},
        {"ceil", [](const Item& a) { return Item(ceiling_of(a)); }},
        {"round_even", &nearest},
        {"reciprocal", [](const Item& a) { return quotient_of(1, a); }},
    };
    const auto found = kFunctions.find(op);
    return found == kFunctions.end() ? UnaryItem() : asking(found->second);
}

}  // namespace headrace::onnx
