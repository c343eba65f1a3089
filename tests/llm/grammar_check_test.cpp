#include "llm/grammar_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
             "root ::= item{2,5} # a (comment\nitem ::= [(\\]\"]+ | \"(\\\"\" | \"{3000}\"\n",
             "root\n  ::= x-1? (x-1 | . )* <[5]> !<[6]> <think>\nx-1 ::= \"x\"{3} \"y\"{ 1 , }",
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

TEST(GrammarCheck, ReadsHalfAGrammarToItsEnd) {
    for (const char* grammar : {"", "root ::= \"abc", "root ::= [x\\", "root ::= \"a\"{", "root ::= \"a\"{1",
                                "root ::= <x", "root ::= #", "root ::= )))"})
        error_of(grammar);
}

}  // namespace
}  // namespace headrace::llm
