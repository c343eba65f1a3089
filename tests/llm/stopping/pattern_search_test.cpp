#include "llm/stopping/pattern_search.h"

#include <gmock/gmock.h>

#include <chrono>
#include <random>
#include <regex>

#include "base/utf8.h"

namespace headrace::llm {
namespace {

using ::testing::HasSubstr;

/// Bytes of the text up to where a match ends first; none without a match.
std::optional<std::size_t> first_end(const std::string& pattern, std::string_view text) {
    auto search = PatternSearch::create({pattern});
    if (!search) {
        ADD_FAILURE() << search.error().message;
        return std::nullopt;
    }
    std::size_t at = 0;
    while (const auto point = first_code_point(text.substr(at))) {
        if (search.value().ends_before(point->value)) return at;
        at += point->size;
        if (search.value().feed(point->value)) return at;
    }
    return std::nullopt;
}

std::string error_of(const std::string& pattern) {
    const auto search = PatternSearch::create({pattern});
    return search ? "no error" : search.error().message;
}

struct Example {
    std::string pattern, text;
    std::optional<std::size_t> end;
};
class PatternExample : public ::testing::TestWithParam<Example> {};

TEST_P(PatternExample, EndsWhereItShould) {
    EXPECT_EQ(first_end(GetParam().pattern, GetParam().text), GetParam().end)
        << GetParam().pattern << " in " << GetParam().text;
}

const std::optional<std::size_t> kNever;
INSTANTIATE_TEST_SUITE_P(
    Syntax, PatternExample,
    ::testing::Values(Example{"b", "abc", 2}, Example{"ab|c", "xab", 3}, Example{"ab|bc", "xbc", 3},
                      Example{"a.c", "abc", 3}, Example{"a.c", "a\nc", kNever}, Example{"a.c", "a😀c", 6},
                      Example{"a[^b]c", "a\nc", 3}, Example{"[a-cx]+y", "bxy", 3}, Example{"[]", "]", kNever},
                      Example{"[^]", "z", 1}, Example{"[\\]\\-]", "-", 1}, Example{"[a-]", "-", 1},
                      Example{"[é-ü]", "ö", 2}, Example{"(?:ab){2,3}c", "abc ababc", 9},
                      Example{"a{2}", "aba aa", 6}, Example{"a{2,}b", "ab aaaab", 8},
                      Example{"xa{0,2}y", "xaaay xay", 9}, Example{"a{,2}", "a{,2}", 5},
                      Example{"{}", "{}", 2}, Example{"(?<word>a)b", "ab", 2}, Example{"(a)(b)", "ab", 2},
                      Example{"a+?b*?c", "aac", 3}, Example{"\\d\\D\\w\\W\\s\\S", "1a_- x", 6},
                      Example{"\\x41\\u00e9\\u{1F600}", "Aé😀", 7}, Example{"\\cJ", "\n", 1},
                      Example{"\\0", std::string("\0", 1), 1}, Example{"\\.\\*\\/\\$", ".*/$", 4},
                      Example{"[\\b]", "\b", 1}, Example{"[\\d-]", "-", 1}, Example{"^b", "ab\nb", 4},
                      Example{"a$", "ab a\n", 4}, Example{"a$", "a", kNever},
                      Example{"\\bcat\\b", "concat cat.", 10}, Example{"a\\Bb", "ab", 2},
                      Example{"\\Bb", "b ab", 4}, Example{"^$", "a\n\n", 2}, Example{"\\s", "\xC2\xA0", 2},
                      Example{"(a*)*b", "aab", 3}, Example{"(|x)+y", "y", 1}));

TEST(PatternSearch, FindsWhatStdRegexFinds) {
    std::mt19937 random(7);
    const auto pick = [&](int n) { return static_cast<int>(random() % n); };
    const std::function<std::string(int)> pattern = [&](int depth) -> std::string {
        if (depth == 0) return std::vector<std::string>{"a", "b", ".", "[^a]", "[bc]", "\\w"}[pick(6)];
        switch (pick(4)) {
            case 0: return pattern(depth - 1) + pattern(depth - 1);
            case 1: return "(" + pattern(depth - 1) + "|" + pattern(depth - 1) + ")";
            case 2:
                return "(?:" + pattern(depth - 1) + ")" +
                       std::vector<std::string>{"*", "+", "?", "{2}", "{1,3}", "{2,}"}[pick(6)];
            default: return pattern(depth - 1) + "c";
        }
    };
    int matches = 0, checked = 0;
    while (checked < 300) {
        const std::string source = pattern(3);
        const std::regex regex(source);
        if (std::regex_match("", regex)) continue;
        ++checked;
        std::string text;
        for (int i = pick(12); i > 0; --i) text += "abc"[pick(3)];
        std::optional<std::size_t> expected;
        for (std::size_t end = 1; end <= text.size() && !expected; ++end)
            for (std::size_t start = 0; start < end; ++start)
                if (std::regex_match(text.substr(start, end - start), regex)) expected = end;
        EXPECT_EQ(first_end(source, text), expected) << source << " in " << text;
        matches += expected.has_value();
    }
    EXPECT_GT(matches, 50);
    EXPECT_LT(matches, 290);
}

TEST(PatternSearch, ReportsTheFirstOfSeveralThatEndTogether) {
    auto search = PatternSearch::create({"x", "", "ab", "b"});
    ASSERT_TRUE(search);
    EXPECT_EQ(search.value().feed('a'), std::nullopt);
    EXPECT_EQ(search.value().feed('b'), 1u) << "empty patterns do not count";
}

TEST(PatternSearch, ExplainsWhatItCannotTake) {
    EXPECT_THAT(error_of("(a)\\1"),
                HasSubstr("stop pattern \"(a)\\1\": at character 5: back references are not"));
    EXPECT_THAT(error_of("a(?=b)"), HasSubstr("look-ahead"));
    EXPECT_THAT(error_of("(?<!a)b"), HasSubstr("look-behind"));
    EXPECT_THAT(error_of("(?i)b"), HasSubstr("flags are not supported"));
    EXPECT_THAT(error_of("\\p{L}"), HasSubstr("properties are not supported"));
    EXPECT_THAT(error_of("*a"), HasSubstr("nothing to repeat"));
    for (const char* pattern : {"a**", "a{2}{3}", "a+{1,9}", "a?{2,}", "a{2}??"})
        EXPECT_THAT(error_of(pattern), HasSubstr("a quantifier follows another")) << pattern;
    EXPECT_THAT(error_of("^*a"), HasSubstr("cannot be repeated"));
    EXPECT_THAT(error_of("(a"), HasSubstr(") is missing"));
    EXPECT_THAT(error_of("a)"), HasSubstr("no group is open"));
    EXPECT_THAT(error_of("[a"), HasSubstr("] is missing"));
    EXPECT_THAT(error_of("[b-a]"), HasSubstr("wrong order"));
    EXPECT_THAT(error_of("[\\d-z]"), HasSubstr("a character on both sides"));
    EXPECT_THAT(error_of("a{3,2}"), HasSubstr("wrong order"));
    EXPECT_THAT(error_of("a\\"), HasSubstr("ends in a backslash"));
    EXPECT_THAT(error_of("\\xg0"), HasSubstr("2 hexadecimal digits"));
    EXPECT_THAT(error_of("\\u{110000}"), HasSubstr("up to 10FFFF"));
    EXPECT_THAT(error_of("\\q"), HasSubstr("means nothing"));
    EXPECT_THAT(error_of("a\xFF"), HasSubstr("pattern 0 is not valid UTF-8 from byte 1"));
}

TEST(PatternSearch, RefusesPatternsThatMatchTheEmptyText) {
    for (const std::string pattern : {"a*", "(|a)", "x|", "(a?)*", "^", "a{0}"})
        EXPECT_THAT(error_of(pattern), HasSubstr("matches the empty text")) << pattern;
}

/// Characters up to where a pattern that may match the empty text ends an answer.
std::optional<std::size_t> later_end(const std::string& pattern, std::u32string_view text) {
    auto search = PatternSearch::create({}, {pattern});
    if (!search) {
        ADD_FAILURE() << search.error().message;
        return std::nullopt;
    }
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (search.value().ends_before(text[at])) return at;
        if (search.value().feed(text[at])) return at + 1;
    }
    return std::nullopt;
}

TEST(PatternSearch, CountsLaterPatternsFromTheFirstCharacterOn) {
    EXPECT_EQ(later_end("a*", U"bbb"), 1u);
    EXPECT_EQ(later_end("^\\s*$", U"One.\nTwo."), std::nullopt);
    EXPECT_EQ(later_end("^\\s*$", U"One.\n \nTwo."), 6u) << "a line of blanks";
    EXPECT_EQ(later_end("^\\s*$", U"\nOne."), std::nullopt) << "not before the first character";
    EXPECT_EQ(later_end("$", U"\n\nOne."), 1u);
    EXPECT_EQ(later_end("^", U"One\nTwo"), 4u);
    EXPECT_EQ(later_end("ne", U"One"), 3u) << "others count as ever";
}

TEST(PatternSearch, EndsLaterPatternsWhereTheTextSoFarEndsBehindACharacterThatIsNoBlank) {
    EXPECT_EQ(later_end("[.!?]\\s*$", U"One. Two."), 4u) << "a sentence, in the middle of a line";
    EXPECT_EQ(later_end("[.!?]\\s*$", U"One, two"), std::nullopt);
    EXPECT_EQ(later_end("two$", U"One two three"), 7u);
    EXPECT_EQ(later_end("two\\s+$", U"One two three"), std::nullopt) << "a blank may be followed by text";
    EXPECT_EQ(later_end("two\\s+$", U"One two  \nthree"), 9u);
    EXPECT_EQ(first_end("[.!?]\\s*$", "One. Two.\nThree"), 9u) << "of other patterns $ is a line's end";
}

TEST(PatternSearch, TellsLaterPatternsFromTheOthersByTheirNumber) {
    auto search = PatternSearch::create({"b", "cc"}, {"", "(a|)b", "c"});
    ASSERT_TRUE(search);
    EXPECT_EQ(search.value().feed('b'), 0u) << "the first of those that end together";
    EXPECT_EQ(search.value().feed('c'), 3u) << "empty patterns do not count";
    const auto wrong = PatternSearch::create({"a*"}, {"b*"});
    ASSERT_FALSE(wrong);
    EXPECT_THAT(wrong.error().message, HasSubstr("\"a*\": it matches the empty text"));
}

TEST(PatternSearch, RefusesHostilePatternsInBoundedTime) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_THAT(error_of(std::string(10000, 'a')), HasSubstr("has 10000 bytes; at most 2000"));
    EXPECT_THAT(error_of(std::string(1999, '(')), HasSubstr("nested more than 50 deep"));
    EXPECT_THAT(error_of("((a{100}){100}){100}"), HasSubstr("more than 2048 states"));
    EXPECT_THAT(error_of("((((((){1000}){1000}){1000}){1000}){1000}){1000}b"),
                HasSubstr("more than 2048 states"));
    EXPECT_THAT(error_of("a{1001}"), HasSubstr("more than 1000 repetitions"));
    EXPECT_THAT(error_of("a{99999999999999999999}"), HasSubstr("more than 1000 repetitions"));
    const auto many = PatternSearch::create(std::vector<std::string>(65, "a"));
    ASSERT_FALSE(many);
    EXPECT_THAT(many.error().message, HasSubstr("more than 64 patterns"));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(PatternSearch, FollowsHostilePatternsInBoundedTime) {
    const auto start = std::chrono::steady_clock::now();
    const std::string text(5000, 'a');
    for (const std::string pattern : {"(a*)*b", "(a|aa)+$", "(.*){20}c", "a{1000}b|(a?){500}c", "(a|a?)+b"})
        EXPECT_EQ(first_end(pattern, text), std::nullopt) << pattern;
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(PatternSearch, SurvivesRandomPatterns) {
    std::mt19937 random(11);
    const std::string alphabet = "ab(()|)*+?{1,2}[^-]\\dwBbux0.$k<:=!\xC3\xA9\x80";
    std::size_t accepted = 0;
    for (int i = 0; i < 20000; ++i) {
        std::string pattern;
        for (std::size_t n = random() % 14; n > 0; --n) pattern += alphabet[random() % alphabet.size()];
        auto search = PatternSearch::create({pattern});
        if (!search) continue;
        ++accepted;
        for (const char32_t c : std::u32string(U"ab(1 \nb\uFFFD😀"))
            if (search.value().ends_before(c) || search.value().feed(c)) break;
    }
    EXPECT_GT(accepted, 1000u);
}

}  // namespace
}  // namespace headrace::llm
