#include "llm/checks/trigger_pattern.h"

#include <gmock/gmock.h>

#include <regex>

#include "llm/engine/large_stack_thread.h"

namespace headrace::llm {
namespace {

using ::testing::HasSubstr;

GrammarTrigger searched(const std::string& pattern) { return {GrammarTrigger::Type::pattern, pattern}; }
GrammarTrigger whole(const std::string& pattern) { return {GrammarTrigger::Type::pattern_full, pattern}; }

std::string refusal(const GrammarTrigger& trigger) {
    const Status status = check_trigger(trigger);
    return status.ok() ? "" : status.error().message;
}

TEST(TriggerPattern, OfOrdinaryToolCallsAreTaken) {
    for (const char* pattern : {"b+", "<tool_call>\\s*", "<(?:tool|function)_call>", "^\\s*\\{",
                                "\\{ {0,64}\"name\"", "[0-9]{3}", "(?:ab){2}c?", "^[^]*?(<tool>)"})
        EXPECT_EQ(refusal(searched(pattern)), "") << pattern;
    EXPECT_EQ(refusal(whole("[\\s\\S]*?(<tool_call>)")), "");
}

TEST(TriggerPattern, ThatBacktracksForLongIsRefused) {
    for (const char* pattern : {"(?:a|a)*b", "^(?:a?)*", "(a{0,3})*"})
        EXPECT_THAT(refusal(searched(pattern)), HasSubstr("write sets")) << pattern;
    for (const char* pattern : {".*b", "(a+)+b", "^(?:a*)*", "^.*.*b", "a[^b]*b", "(?:x*y)z"})
        EXPECT_THAT(refusal(searched(pattern)), HasSubstr("without a bound")) << pattern;
    for (const char* pattern : {"(?:a|a){9}b", "a{0,20}a{0,20}b", "(?:(?:a|a){2}){5}b", "(?:a?){64}"})
        EXPECT_THAT(refusal(searched(pattern)), HasSubstr("256 ways")) << pattern;
    EXPECT_THAT(refusal(whole(".*.*")), HasSubstr("without a bound"));
}

TEST(TriggerPattern, SaysWhatIsNoPattern) {
    EXPECT_THAT(refusal(searched("(a")), HasSubstr("character"));
    EXPECT_THAT(refusal(searched("a\xff")), HasSubstr("not valid UTF-8 from byte 1 on"));
    EXPECT_THAT(refusal(searched(std::string(3000, 'a'))), HasSubstr("3000 bytes"));
    EXPECT_NE(refusal(searched("(a)\\1")), "");
}

TEST(TriggerPattern, LimitsWordsOfWhichRegularExpressionsAreMade) {
    const auto word = [](std::size_t size) {
        return GrammarTrigger{GrammarTrigger::Type::word, std::string(size, '(')};
    };
    EXPECT_EQ(refusal(word(2000)), "") << "it is no pattern";
    EXPECT_THAT(refusal(word(100000)), HasSubstr("it has 100000 bytes, and 2000 are allowed"));
}

#if defined(__SANITIZE_THREAD__)
constexpr std::size_t kLongest = std::size_t{4} << 10;  // the sanitizer itself ends at 65,536 nested calls
#else
constexpr std::size_t kLongest = kMostSearchedForTriggers;
#endif

TEST(TriggerPattern, IsMatchedAgainstTheLongestTextOnALargeStackThread) {
    const std::string text(kLongest, 'a');
    for (const char* pattern : {"[^]*b", "[^]*?b", "(a)*b", "(?:aa)*b", "(?:(a)(a))*b"}) {
        ASSERT_EQ(refusal(whole(pattern)), "") << pattern;
        bool matches = true;
        LargeStackThread thread;
        ASSERT_TRUE(thread.start([&] { matches = std::regex_match(text, std::regex(pattern)); }).ok());
        thread.join();
        EXPECT_FALSE(matches) << pattern;
    }
}

}  // namespace
}  // namespace headrace::llm
