#include "ir/dim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace headrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string form(std::string_view text) { return Expression::parse(text).str(); }

std::optional<std::int64_t> value(std::string_view text, const std::map<std::string, std::int64_t>& names) {
    return Expression::parse(text)
        .substituted([&](const std::string& name) -> std::optional<Expression> {
            const auto it = names.find(name);
            return it == names.end() ? std::nullopt : std::optional(Expression(it->second));
        })
        .number();
}

struct Spellings {
    std::string form;
    std::vector<std::string> texts;
};

void PrintTo(const Spellings& s, std::ostream* os) { *os << s.form; }

class Spelled : public ::testing::TestWithParam<Spellings> {};

TEST_P(Spelled, InAnyWayAnExpressionHasOneForm) {
    for (const std::string& text : GetParam().texts) EXPECT_EQ(form(text), GetParam().form) << text;
    EXPECT_EQ(form(GetParam().form), GetParam().form) << "the form is read as itself";
}

INSTANTIATE_TEST_SUITE_P(
    Expression, Spelled,
    ::testing::Values(
        Spellings{"(s64+1)",
                  {"s64+1", "1+s64", "(s64 + 1)", "s64 - (-1)", "2*s64 + 2 - (s64+1)", "(2*s64 + 2)//2"}},
        Spellings{"(2*n+2)", {"2*n + 2", "(n+1)*2", "2*(1 + n)", "n + 1 + n + 1"}},
        Spellings{"(n - 1)", {"n-1", "n - 1", "-1 + n"}},
        Spellings{"(a - b)", {"a - b", "-b + a", "(a)-(b)"}},
        Spellings{"3*a*b", {"3*a*b", "b*3*a", "a*b + 2*(b*a)"}}, Spellings{"a*a", {"a**2", "a*a", "a**3//a"}},
        Spellings{"(a*b+a+b+1)", {"(a+1)*(b+1)", "(b+1)*a + b + 1"}},
        Spellings{"(h//2)", {"h//2", "h/2", "(h-2)/2+1", "(2*h)//4", "(2*h + 1)//4", "floor(h*0.5)"}},
        Spellings{"((h+1)//2)", {"(h-1)//2 + 1", "(h-2)^/2+1", "(h + 1)/2", "(2*h+3)//4 "}},
        Spellings{"((n+3)//4)", {"((n+1)//2+1)//2", "n ^/ 4", "(n-1)//4 + 1"}},
        Spellings{
            "n",
            {"n", "(n)", "n*m//m", "(4*n + 3)//4", "Max(n)", "Max(n, n - 2)", "Min(n + 1, n)", "n*1 + 0"}},
        Spellings{"(n//(a*b))", {"n//(a*b)", "n//(b*a)"}}, Spellings{"(n//(a+1))", {"n//(1+a)"}},
        Spellings{"(-2*(n//2)+n)", {"Mod(n, 2)", "PythonMod(n, 2)", "n - n//2*2"}},
        Spellings{"Max(3, n)", {"Max(1, n, 3)", "Max(n, 3)"}},
        Spellings{"Min(m, n)", {"Min(n, m)", "Min(m, n, m)"}}, Spellings{"3*h", {"floor(h*3)", "h*3"}},
        Spellings{"(m*n - m)", {"(n-1)*m", "m*n - m"}}));

TEST(Expression, TakesOtherTextsAsOneName) {
    for (const char* name : {"batch", "batch-size", "batch size", "a.b:c", "*a", "a*", "2n", "n*2.5",
                             "99999999999999999999*a", "a b", "n**17", "n**-1", "größe"})
        EXPECT_EQ(form(name), name);
    for (const char* name : {"8", "2*3", "()", "Max(n", "n)"})
        EXPECT_EQ(form(name), "'" + std::string(name) + "'");
    EXPECT_EQ(form("'"), "''''");
    EXPECT_EQ(form("floor"), "floor");
    EXPECT_EQ(form("floor + 1"), "(floor+1)");
    EXPECT_EQ(form("8*ceil(n/2.5) + f(a, (b))"), "(8*ceil(n/2.5)+f(a, (b)))")
        << "unknown functions are names";
    EXPECT_EQ(form("'batch size' + 1"), "('batch size'+1)");
    EXPECT_EQ((Expression::symbol("batch size") + 1).str(), "('batch size'+1)");
    EXPECT_EQ(form("n//0"), "(n//0)");
}

TEST(Expression, ComputesWithNumbersInPlaceOfNames) {
    EXPECT_EQ(value("(n+3)*m - 4", {{"n", 2}, {"m", 5}}), 21);
    EXPECT_EQ(value("Max(2, n)*Min(n, 9)", {{"n", 1}}), 2);
    EXPECT_EQ(value("n//m", {{"n", 7}, {"m", 2}}), 3);
    EXPECT_EQ(value("n//m", {{"n", 7}, {"m", 0}}), std::nullopt);
    EXPECT_EQ(value("(n+m)//3", {{"n", 7}}), std::nullopt);
    EXPECT_EQ(value("g(n)+1", {{"g(n)", 7}}), 8) << "calls are names";
}

TEST(Expression, FormsHaveTheValuesOfWhatWasWritten) {
    for (std::int64_t n = 0; n < 40; ++n) {
        const auto floor = [](std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); };
        EXPECT_EQ(value("(n-5)//3", {{"n", n}}), floor(n - 5, 3)) << n;
        EXPECT_EQ(value("(6*n-5)//4 + (n//2)*3", {{"n", n}}), floor(6 * n - 5, 4) + n / 2 * 3) << n;
        EXPECT_EQ(value("((n+2)//3+4)//5", {{"n", n}}), ((n + 2) / 3 + 4) / 5) << n;
        EXPECT_EQ(value("(7-n)//4", {{"n", n}}), floor(7 - n, 4)) << n;
        EXPECT_EQ(value("(n*m + m + 3)//(2*m)", {{"n", n}, {"m", 5}}), (n * 5 + 8) / 10) << n;
        EXPECT_EQ(value("Mod(3*n+1, 7)", {{"n", n}}), (3 * n + 1) % 7) << n;
        EXPECT_EQ(value("floor(n*1.25)", {{"n", n}}), n * 5 / 4) << n;
    }
}

TEST(Expression, ArithmeticThatOverflowsGivesANameOfItsOwn) {
    const Expression large = Expression::parse("4611686018427387904*n");
    EXPECT_EQ(large + large, Expression::parse("4611686018427387904*n + 4611686018427387904*n"));
    EXPECT_FALSE(large + large == large);
    EXPECT_EQ(form((large * 4).str()), (large * 4).str());
    Expression terms = 1;
    for (int i = 0; i < 12; ++i) terms = terms * (Expression::symbol("n" + std::to_string(i)) + 1);
    EXPECT_LE(terms.terms().size(), 200U);
}

/// As a detector counts what it found of each class.
TEST(Expression, AddsUpWhatNinetyExtentsHave) {
    Expression total = 0;
    for (int i = 0; i < 90; ++i)
        total = total + Expression::least({60, Expression::symbol("count" + std::to_string(i))});
    EXPECT_EQ(total.names().size(), 90U);
    EXPECT_EQ(total.range(), (Range{0, 90 * 60}));
    EXPECT_EQ(Expression::largest({total, 0}), total);
    const auto value = total.substituted([](const std::string&) { return Expression(7); });
    EXPECT_EQ(value.number(), 90 * 7);
}

TEST(Expression, TextsThatGrowWithEveryLevelAreCutShort) {
    std::string power = "(n+m)", rest = "n";
    while (power.size() < 500) power = "(" + power + ")**16";
    while (rest.size() < 500) rest = "Mod(" + rest + ", m)";
    for (const std::string& text : {power, rest}) {
        EXPECT_LT(form(text).size(), 40000U);
        EXPECT_EQ(form(text), form(text));
        EXPECT_LE(Dim::symbolic(text).str().size(), 4096U);
    }
}

TEST(Expression, TellsItsNames) {
    const Expression e = Expression::parse("(a+1)//2*b + Max(c, d)");
    EXPECT_THAT(e.names(), ElementsAre("a", "b", "c", "d"));
    EXPECT_THAT(Expression(4).names(), IsEmpty());
}

TEST(Expression, IsALineOfOneNameOrNot) {
    const auto line = Expression::parse("2*n - 6").line();
    ASSERT_TRUE(line);
    EXPECT_EQ(line->name, "n");
    EXPECT_EQ(line->factor, 2);
    EXPECT_EQ(line->offset, -6);
    for (const char* text : {"a+b", "a*b", "a**2", "n//2", "n//2 + n"})
        EXPECT_FALSE(Expression::parse(text).line()) << text;
    EXPECT_FALSE(Expression(4).line());
}

TEST(Expression, ExtremesKeepOnlyWhatMayDecide) {
    const auto at_least = [](std::int64_t least) {
        return [least](const std::string&) { return std::optional(Range{least, INT64_MAX}); };
    };
    EXPECT_EQ(Expression::parse("Max(n, 1)", at_least(1)).str(), "n");
    EXPECT_EQ(Expression::parse("Max(n, 1)", at_least(0)).str(), "Max(1, n)");
    EXPECT_EQ(Expression::parse("Min(n, m + n, 2*n)", at_least(0)).str(), "n");
    EXPECT_EQ(Expression::parse("Max(n, n*m)", at_least(1)).str(), "m*n");
}

TEST(Expression, QuestionsAreAnsweredByRanges) {
    const Expression n = Expression::symbol("n", {1, INT64_MAX}), m = Expression::symbol("m", {4, 8});
    EXPECT_EQ(n.equals(m), Answer::unknown);
    EXPECT_EQ((n + m).is_less(n), Answer::no);
    EXPECT_EQ(n.is_less(n * m), Answer::yes);
    EXPECT_EQ((n * 2).equals(m * 4 + 1), Answer::no) << "even and odd";
    EXPECT_EQ(((n + 1) / 2).equals(n - n / 2), Answer::yes) << "two forms";
    EXPECT_EQ((n % 3).is_less(3), Answer::yes);
    EXPECT_EQ(n.is_at_least(n / 2), Answer::yes);
    EXPECT_EQ(Expression::largest({n, m}).is_at_least(m), Answer::yes);
    EXPECT_EQ(Expression::least({n, m}).is_less(9), Answer::yes);
    EXPECT_EQ((m - 3).range(), (Range{1, 5}));
    EXPECT_EQ((n - m).range(), (Range{-7, INT64_MAX}));
}

}  // namespace
}  // namespace headrace
