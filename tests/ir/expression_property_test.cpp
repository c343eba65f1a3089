/// Random expressions against arithmetic with numbers, and all answers against all values.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <random>

#include "ir/dim.h"

namespace headrace {
namespace {

using Values = std::map<std::string, std::int64_t>;

struct Symbol {
    const char* name;
    Range range;
};
constexpr std::array kSymbols{Symbol{"a", {0, 5}}, Symbol{"b", {1, 4}}, Symbol{"c", {2, 6}}};

std::optional<Range> range_of(const std::string& name) {
    for (const Symbol& s : kSymbols)
        if (name == s.name) return s.range;
    return std::nullopt;
}

std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
    return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

/// An expression twice: as it is written, which the test computes by itself, and in its form.
struct Written {
    enum class Op { number, symbol, add, subtract, multiply, quotient, divided_up, rest, largest, least };
    Op op;
    std::int64_t number = 0;
    std::shared_ptr<Written> left, right;

    Expression form() const {
        switch (op) {
            case Op::number: return number;
            case Op::symbol: return Expression::symbol(kSymbols[number].name, kSymbols[number].range);
            case Op::add: return left->form() + right->form();
            case Op::subtract: return left->form() - right->form();
            case Op::multiply: return left->form() * right->form();
            case Op::quotient: return left->form() / right->form();
            case Op::divided_up: return left->form().divided_up(right->form());
            case Op::rest: return left->form() % right->form();
            case Op::largest: return Expression::largest({left->form(), right->form()});
            default: return Expression::least({left->form(), right->form()});
        }
    }

    /// Nothing where it divides by 0.
    std::optional<std::int64_t> value(const Values& values) const {
        if (op == Op::number) return number;
        if (op == Op::symbol) return values.at(kSymbols[number].name);
        const auto a = left->value(values), b = right->value(values);
        if (!a || !b) return std::nullopt;
        switch (op) {
            case Op::add: return *a + *b;
            case Op::subtract: return *a - *b;
            case Op::multiply: return *a * *b;
            case Op::largest: return std::max(*a, *b);
            case Op::least: return std::min(*a, *b);
            default: break;
        }
        if (*b == 0) return std::nullopt;
        if (op == Op::quotient) return floor_quotient(*a, *b);
        if (op == Op::divided_up) return -floor_quotient(-*a, *b);
        return *a - *b * floor_quotient(*a, *b);
    }
};

class Writer {
public:
    explicit Writer(unsigned seed) : random_(seed) {}

    std::shared_ptr<Written> expression(int depth) {
        if (depth == 0 || below(4) == 0) {
            if (below(3) == 0) return made(Written::Op::number, below(9) - 3);
            return made(Written::Op::symbol, below(kSymbols.size()));
        }
        const auto op = static_cast<Written::Op>(2 + below(8));
        auto written = made(op, 0);
        written->left = expression(depth - 1);
        const bool divides =
            op == Written::Op::quotient || op == Written::Op::divided_up || op == Written::Op::rest;
        written->right =
            divides && below(3) != 0 ? made(Written::Op::number, 1 + below(5)) : expression(depth - 1);
        return written;
    }

private:
    std::int64_t below(std::int64_t count) {
        return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(count));
    }
    static std::shared_ptr<Written> made(Written::Op op, std::int64_t number) {
        return std::make_shared<Written>(Written{op, number, nullptr, nullptr});
    }

    std::mt19937 random_;
};

template <class F>
void for_all_values(F&& f) {
    for (std::int64_t a = 0; a <= 5; ++a)
        for (std::int64_t b = 1; b <= 4; ++b)
            for (std::int64_t c = 2; c <= 6; ++c) f(Values{{"a", a}, {"b", b}, {"c", c}});
}

std::optional<std::int64_t> value_of(const Expression& e, const Values& values) {
    return e
        .substituted([&](const std::string& name) -> std::optional<Expression> {
            const auto it = values.find(name);
            return it == values.end() ? std::nullopt : std::optional(Expression(it->second));
        })
        .number();
}

constexpr unsigned kCases = 1500;

TEST(RandomExpressions, HaveTheValuesOfWhatWasWrittenWithinTheirRange) {
    for (unsigned seed = 0; seed < kCases; ++seed) {
        const auto written = Writer(seed).expression(4);
        const Expression form = written->form();
        const Range range = form.range();
        for_all_values([&](const Values& values) {
            const auto expected = written->value(values);
            if (!expected) return;
            const auto actual = value_of(form, values);
            if (actual) {
                ASSERT_EQ(actual, expected) << seed << ": " << form.str();
            }
            ASSERT_LE(range.least, *expected) << seed << ": " << form.str();
            ASSERT_GE(range.most, *expected) << seed << ": " << form.str();
        });
    }
}

TEST(RandomExpressions, AreReadAsTheyArePrinted) {
    for (unsigned seed = 0; seed < kCases; ++seed) {
        const Expression form = Writer(seed).expression(4)->form();
        if (form.number() || form.str().size() > 400) continue;
        EXPECT_EQ(Expression::parse(form.str(), range_of).str(), form.str()) << seed;
    }
}

TEST(RandomExpressions, AnswersAreRightForAllValues) {
    int decided = 0;
    for (unsigned seed = 0; seed < kCases; ++seed) {
        Writer writer(seed);
        const auto a = writer.expression(3), b = writer.expression(3);
        const Expression x = a->form(), y = b->form();
        const Answer equal = x.equals(y), less = x.is_less(y), at_least = x.is_at_least(y);
        decided += (equal != Answer::unknown) + (less != Answer::unknown);
        if (x == y) {
            EXPECT_EQ(equal, Answer::yes);
        }
        for_all_values([&](const Values& values) {
            const auto p = a->value(values), q = b->value(values);
            if (!p || !q) return;
            const auto expect = [&](Answer answer, bool truth) {
                if (answer == Answer::unknown) return;
                ASSERT_EQ(answer == Answer::yes, truth) << seed << ": " << x.str() << " and " << y.str();
            };
            expect(equal, p == q);
            expect(less, *p < *q);
            expect(at_least, *p >= *q);
        });
    }
    EXPECT_GT(decided, 1000) << "of 3000 questions";
}

/// Without quotients and extremes the form is the polynomial: equal values are one form.
TEST(RandomExpressions, PolynomialsOfEqualValuesHaveOneForm) {
    const auto n = Expression::symbol("n"), m = Expression::symbol("m");
    std::mt19937 random(7);
    for (int i = 0; i < 300; ++i) {
        const auto factor = [&] { return static_cast<std::int64_t>(random() % 7) - 3; };
        const std::int64_t p = factor(), q = factor(), r = factor(), s = factor();
        const Expression product = (n * p + q) * (m * r + s);
        const Expression sum = m * s * 0 + Expression(q * s) + n * (p * s) + m * (q * r) + m * n * (p * r);
        EXPECT_EQ(product.str(), sum.str());
        if (p * r != 0) {
            EXPECT_NE(product.str(), (sum + n).str());
        }
    }
}

TEST(RandomExpressions, AnyTextIsRead) {
    constexpr std::string_view kPieces[] = {"n",
                                            "m",
                                            "(",
                                            ")",
                                            "+",
                                            "-",
                                            "*",
                                            "/",
                                            "//",
                                            "^/",
                                            "%",
                                            "**",
                                            "Max(",
                                            "Min(",
                                            "Mod(",
                                            "floor(",
                                            ",",
                                            " ",
                                            "'",
                                            "9",
                                            "0",
                                            "2.5",
                                            "4611686018427387904",
                                            "#"};
    std::mt19937 random(3);
    for (int i = 0; i < 20000; ++i) {
        std::string text;
        for (unsigned length = random() % 14; length > 0; --length)
            text += kPieces[random() % std::size(kPieces)];
        const Dim d = Dim::symbolic(text);
        EXPECT_LE(d.str().size(), 512U) << text;
        EXPECT_EQ(Dim::symbolic(d.str()).str(), d.str()) << text;
    }
}

TEST(RandomExpressions, AnyNameStaysOneInEveryText) {
    constexpr std::string_view kPieces[] = {
        "n", "2",  "floor", "Max(", "min(a,b)", "(", ")",          "'",    "''",
        "*", "//", " + ",   "-",    ",",        " ", "#",          "...#", "...#0123456789abcdef",
        ".", ":",  "\n",    "\"",   "\\",       "é", "batch size", "Mod",  "**"};
    std::mt19937 random(5);
    const auto a_name = [&] {
        std::string name(kPieces[random() % std::size(kPieces)]);
        for (unsigned length = random() % 5; length > 0; --length)
            name += kPieces[random() % std::size(kPieces)];
        return name;
    };
    const Expression x = Expression::symbol("x");
    for (int i = 0; i < 20000; ++i) {
        const std::string name = a_name(), other = a_name();
        const Dim d = Dim::named(name, 2, 9), e = Dim::named(other, 2, 9);
        ASSERT_EQ(d.name(), name);
        ASSERT_EQ(d == e, name == other) << name << " and " << other;
        ASSERT_EQ(Dim::symbolic(d.str()), d) << name;
        if (name == other) continue;
        const Expression n = d.expression(), m = e.expression();
        for (const Expression& made :
             {n + m, n - m, n * m + 1, n / m, (n + 1) / 2, n / (m + x), Expression::largest({n, m, x}),
              Expression::least({n, m}) * x, n.scaled(0.7), n * 3 - Expression::largest({n / 2, m})}) {
            const Expression read = Expression::parse(made.str(), [](const std::string& symbol) {
                return std::optional(symbol == "x" ? kAnyExtent : Range{2, 9});
            });
            ASSERT_EQ(read.str(), made.str()) << name << " and " << other;
            ASSERT_EQ(read.names(), made.names()) << made.str();
        }
    }
}

TEST(RandomExpressions, LongNamesAreCutAndStayOne) {
    for (const char* piece : {"n", "(", "'", "a*", "Max("}) {
        std::string name;
        while (name.size() < 100000) name += piece;
        const Dim d = Dim::named(name);
        EXPECT_LE(d.str().size(), 512U);
        EXPECT_EQ(Dim::symbolic(d.str()), d);
        EXPECT_FALSE(Dim::named(name + "n") == d);
        EXPECT_EQ(Expression::parse((d.expression() + 1).str()), d.expression() + 1);
    }
}

}  // namespace
}  // namespace headrace
