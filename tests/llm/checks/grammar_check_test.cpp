#include "llm/checks/grammar_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace headrace::llm {
namespace {

using testing::HasSubstr;

std::string error_of(const std::string& grammar) {
    const Status status = check_grammar(grammar);
    return status.ok() ? "" : status.error().message;
}

std::string times(int count, const std::string& text) {
    std::string result;
    for (int i = 0; i < count; ++i) result += text;
    return result;
}

TEST(GrammarCheck, TakesWhatGbnfCan) {
    for (const char* grammar : {
             R"(root ::= "a")",
             R"(root ::= [a-a\t-\n\x00-\U0010FFFFé-ÿz-])",
             "root ::= item{2,5} # a (comment\nitem ::= [(\\]\"]+ | \"(\\\"\" | \"{3000}\"\n",
             "root ::=\n  x-1? (x-1 | . )* <[5]> !<[6]> <think>\nx-1 ::= \"x\"{3} \"y\"{ 1 , }",
         })
        EXPECT_EQ(error_of(grammar), "") << grammar;
}

TEST(GrammarCheck, NamesTheRuleThatIsMissing) {
    EXPECT_THAT(error_of(R"(roto ::= "a")"), HasSubstr("there is no rule 'root'"));
    EXPECT_THAT(error_of("root ::= digit tens\ndigit ::= [0-9]"), HasSubstr("the rule 'tens' is used"));
}

TEST(GrammarCheck, RefusesWhatTheParserWouldNotSurvive) {
    EXPECT_THAT(error_of("root ::= " + times(200000, "(") + "\"a\"" + times(200000, ")")),
                HasSubstr("bytes"));
    EXPECT_THAT(error_of("root ::= " + times(1000, "(") + "\"a\"" + times(1000, ")")),
                HasSubstr("nested deeper than 100"));
    std::string chain = "root ::= r0\n";
    for (int i = 0; i < 6000; ++i) chain += fmt::format("r{} ::= r{}\n", i, i + 1);
    EXPECT_THAT(error_of(chain + "r6000 ::= \"a\""), HasSubstr("more than 5000 rules"));
    EXPECT_THAT(error_of("root ::= \"a\"{2000000000}"),
                HasSubstr("repeated 2000000000 times, and 2000 are possible"));
    EXPECT_THAT(error_of("root ::= \"a\"{1,99999999999999999999999}"), HasSubstr("possible"));
}

TEST(GrammarCheck, SaysWhereAGrammarIsWrong) {
    const std::pair<const char*, const char*> wrong[] = {
        {"root ::= (\"a\"", "line 1, column 14: ')' is expected at the end of the text"},
        {"root ::= \"a\")", "line 1, column 13: no '(' belongs to this ')'"},
        {"root ::= \"a\nb\" x\nx = 5", "line 3, column 3: '::=' is expected before '= 5'"},
        {"root ::= * \"a\"", "line 1, column 10: '*' has nothing before it"},
        {"root ::= \"\"?", "'?' has nothing before it"},
        {"root ::= \"a\"{5,2}", "line 1, column 13: a repetition from 5 to 2 times"},
        {"root ::= \"a\"{,2}", "column 14: a number is expected before ',2}'"},
        {"root ::= \"\\xg0\"", "column 13: a hexadecimal digit (\\x has 2) is expected before 'g0\"'"},
        {"root ::= \"\\q\"", "column 11: after '\\' there may be"},
        {"root ::= [z-a]", "column 11: the range 'z-a' ends before it begins"},
        {"root ::= [a\xC3\xA9-\\x7f]", "column 12: the range '\xC3\xA9-\\x7f' ends before"},
        {"root ::= [\\n-\\t]", "the range '\\n-\\t' ends before"},
        {"root ::= [a-z", "']' is expected at the end of the text"},
        {"root ::= <think", "'>' is expected at the end of the text"},
        {"root ::= <[x]>", "column 12: a token's number is expected"},
        {"root ::= \"\xC3\xA9\xC3\xA9\" foo_bar", "column 18: a text, a name"},
        {"root ::= ((\"a\"{50} \"b\"{0,50})){41}", "repetitions inside of each other: 41 times"},
    };
    for (const auto& [grammar, where] : wrong) EXPECT_THAT(error_of(grammar), HasSubstr(where)) << grammar;
    EXPECT_THAT(error_of(std::string("root ::= \"a\0b\"", 15)), HasSubstr("NUL"));
}

TEST(GrammarCheck, RefusesSmallGrammarsThatAreLargeWrittenOut) {
    const std::string text = "\"" + std::string(100000, 'a') + "\"";
    EXPECT_EQ(error_of("root ::= " + text + "{5}"), "");
    EXPECT_THAT(error_of("root ::= " + text + "{2000}"), HasSubstr("more than 1048576 characters"));
    EXPECT_THAT(error_of("root ::= " + text + "{0,2000}"), HasSubstr("more than 1048576 characters"));
}

TEST(GrammarCheck, RefusesWhatTakesTheThirdPowerOfItsOptionalPartsInTime) {
    EXPECT_EQ(error_of("root ::= " + times(32, "\"a\"? ")), "");
    EXPECT_EQ(error_of("root ::= " + times(200, "\"a\"? \"b\" ")), "");
    EXPECT_EQ(error_of("root ::= [a-z]{0,1000} (\"x\" | \"y\"?){20}"), "");
    EXPECT_EQ(error_of("root ::= (" + times(500, "\"a\" | ") + "\"b\")*"), "");
    for (const std::string& grammar :
         {"root ::= " + times(33, "\"a\"? "), "root ::= " + times(33, "\"a\"* "),
          std::string("root ::= (\"a\" |){33}"), std::string("root ::= (\"a\"? \"b\"{0,2}){17}"),
          "root ::= " + times(33, "x ") + "\nx ::= \"a\"?",
          "y ::= x x x\nroot ::= " + times(11, "y ") + "\nx ::= z | \"b\"\nz ::= \"a\" |"})
        EXPECT_THAT(error_of(grammar), HasSubstr("more than 32 parts in a row may be left out")) << grammar;
}

/// A rule for each number below `count`, as `rule` makes it, and the last one that they lead to.
std::string chain(int count, const std::function<std::string(const std::string& next)>& rule) {
    std::string grammar = "root ::= r0\n";
    for (int i = 0; i < count; ++i)
        grammar += fmt::format("r{} ::= {}\n", i, rule(fmt::format("r{}", i + 1)));
    return grammar + fmt::format("r{} ::= \"a\"", count);
}

TEST(GrammarCheck, RefusesRulesThatBeginWithEachOtherInTooManyWays) {
    const auto doubled = [](const std::string& next) { return next + " | " + next + " \"b\""; };
    EXPECT_EQ(error_of(chain(12, doubled)), "");
    const auto behind_a_text = [&](const std::string& next) { return "\"c\" (" + doubled(next) + ")"; };
    EXPECT_EQ(error_of(chain(40, behind_a_text)), "");
    const auto repeated = [](const std::string& next) { return next + "{2,9} | " + next + "? \"b\""; };
    const auto behind_an_optional = [](const std::string& next) { return next + "? " + next; };
    EXPECT_EQ(error_of(chain(10, behind_an_optional)), "");
    for (const std::string& grammar :
         {chain(14, doubled), chain(40, doubled), chain(40, repeated), chain(40, behind_an_optional)})
        EXPECT_THAT(error_of(grammar), HasSubstr("in more than 16384 ways")) << grammar;
    EXPECT_THAT(error_of(chain(12, doubled) + "\nx ::= r0{0,2000}"), HasSubstr("in more than 1048576 ways"));
}

TEST(GrammarCheck, RefusesRulesThatBeginWithEachOtherInALongRow) {
    const auto in_brackets = [](int levels) {
        return [=](const std::string& next) { return times(levels, "(") + next + times(levels, ")"); };
    };
    EXPECT_EQ(error_of(chain(9, in_brackets(99))), "");
    EXPECT_EQ(error_of(chain(900, in_brackets(0))), "");
    EXPECT_EQ(error_of(chain(4000, [](const std::string& next) { return "\"a\" " + next; })), "");
    EXPECT_THAT(error_of(chain(1200, in_brackets(99))), HasSubstr("in a row, and 1000 are possible"));
    EXPECT_THAT(error_of(chain(4000, in_brackets(0))), HasSubstr("4002 rules or brackets begin"));
}

TEST(GrammarCheck, RefusesRulesThatBeginWithThemselves) {
    for (const char* grammar :
         {"root ::= root \"a\"", "root ::= \"\" root", "root ::= \"b\"? root", "root ::= (\"x\" | (root))",
          "root ::= \"a\"\nx ::= y\ny ::= x* \"b\"", "root ::= x{0} y\ny ::= root\nx ::= \"a\""})
        EXPECT_THAT(error_of(grammar), HasSubstr("left recursion")) << grammar;
    for (const char* grammar : {"root ::= root{0} \"a\"", "root ::= \"a\" root | \"b\""})
        EXPECT_EQ(error_of(grammar), "") << grammar;
}

TEST(GrammarCheck, ReadsHalfAGrammarToItsEnd) {
    for (const char* grammar : {"", "root ::= \"abc", "root ::= [x\\", "root ::= \"a\"{", "root ::= \"a\"{1",
                                "root ::= <x", "root ::= #", "root ::= )))"})
        error_of(grammar);
}

}  // namespace
}  // namespace headrace::llm
