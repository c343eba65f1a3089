#include "llm/stopping/stop_conditions.h"

#include <gmock/gmock.h>

#include <limits>

#include "llm/parameters/parameters.h"
#include "llm/watched_text.h"

namespace headrace::llm {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::HasSubstr;

std::string error_of(const StoppingSettings& settings) {
    const auto watch = StopConditions::create(settings);
    return watch ? "no error" : watch.error().message;
}

TEST(StopConditions, ShowsEveryPieceAtOnceWithoutSettings) {
    StopConditions watch = make_watch({});
    for (const std::string piece : {"Hello", ",", "", " wörld\n"})
        EXPECT_EQ(watch.feed(1, piece, {}).text, piece);
    EXPECT_EQ(watch.finish(), "");
}

TEST(StopConditions, NamesEveryReasonDifferently) {
    std::vector<std::string_view> names;
    for (int i = 0; i <= static_cast<int>(StopReason::failed); ++i)
        names.push_back(to_string(static_cast<StopReason>(i)));
    EXPECT_EQ(to_string(StopReason::none), "none");
    EXPECT_EQ(to_string(StopReason::time_limit), "time_limit");
    EXPECT_EQ(to_string(StopReason::failed), "failed");
    std::sort(names.begin(), names.end());
    EXPECT_EQ(std::unique(names.begin(), names.end()), names.end());
}

TEST(StopStrings, EndTheTextBeforeThemEvenAcrossTokens) {
    const Watched watched =
        watch_pieces({.strings = {"</end>"}}, {"good", "bye<", "/en", "d> and more", "x"});
    EXPECT_EQ(watched.text, "goodbye");
    EXPECT_EQ(watched.reason, StopReason::stop_string);
    EXPECT_EQ(watched.detail, "</end>");
    EXPECT_EQ(watched.steps, 4u);
}

TEST(StopStrings, HoldBackNoMoreThanMayBeTheirStart) {
    StopConditions watch = make_watch({.strings = {"aab"}});
    EXPECT_EQ(watch.feed(1, "xa", {}).text, "x");
    EXPECT_EQ(watch.feed(2, "aa", {}).text, "a");
    EXPECT_EQ(watch.feed(3, "c", {}).text, "aac");
    EXPECT_EQ(watch.feed(4, "za", {}).text, "z");
    EXPECT_EQ(watch.finish(), "a");
    EXPECT_EQ(watch.finish(), "");
}

TEST(StopStrings, AreCountedWhileTheyAreHeldBackAndNotOnceTheyAreTakenOff) {
    StopConditions watch = make_watch({.strings = {"</end>"}});
    const auto lengths_after = [&](std::string_view piece) {
        watch.feed(1, piece, {});
        return std::pair(watch.length(), watch.shown_length());
    };
    EXPECT_EQ(lengths_after("good"), std::pair(std::size_t{4}, std::size_t{4}));
    EXPECT_EQ(lengths_after("bye<"), std::pair(std::size_t{8}, std::size_t{7}));
    EXPECT_EQ(lengths_after("/en"), std::pair(std::size_t{11}, std::size_t{7}));
    EXPECT_EQ(lengths_after("d> more"), std::pair(std::size_t{7}, std::size_t{7}));
}

TEST(StopStrings, ThatAreCompleteFirstWin) {
    EXPECT_EQ(watch_pieces({.strings = {"cdef", "bcd"}}, {"abcdef"}).text, "a");
    EXPECT_EQ(watch_pieces({.strings = {"abcdef", "cd"}}, {"abcdef"}).text, "ab");
}

TEST(StopStrings, ThatAreLongestWinAmongThoseCompleteTogether) {
    const Watched watched = watch_pieces({.strings = {"d", "bcd", "cd"}}, single_bytes("abcd"));
    EXPECT_EQ(watched.text, "a");
    EXPECT_EQ(watched.detail, "bcd");
}

TEST(StopStrings, ThatAreEmptyAreIgnored) {
    EXPECT_EQ(watch_pieces({.strings = {"", ""}}, {"all", " of it"}).text, "all of it");
}

TEST(StopStrings, RepeatTheReasonWhenMoreIsFed) {
    StopConditions watch = make_watch({.strings = {"!"}});
    watch.feed(1, "hey!", {});
    const auto step = watch.feed(2, "more", {});
    EXPECT_EQ(step.reason, StopReason::stop_string);
    EXPECT_EQ(step.text, "");
    EXPECT_EQ(watch.finish(), "");
}

TEST(StopStrings, AboveTheLimitsAreErrorsThatNameThem) {
    EXPECT_THAT(error_of({.strings = std::vector<std::string>(1025, "x")}),
                HasSubstr("more than 1024 strings"));
    EXPECT_THAT(error_of({.strings = std::vector<std::string>(1000, std::string(10000, 'x'))}),
                HasSubstr("more than 1048576 bytes"));
    EXPECT_THAT(error_of({.strings = {"fine", "\xFF"}}),
                HasSubstr("string 1 is not valid UTF-8 from byte 0"));
}

TEST(StopStrings, OfHostileSizesCostBoundedTime) {
    // Nearly every byte falls back over the whole of what matched.
    const StoppingSettings settings{.strings =
                                        std::vector<std::string>(1000, std::string(1000, 'a').append("b"))};
    const auto start = steady_clock::now();
    const Watched watched =
        watch_pieces(settings, std::vector<std::string>(200, std::string(99, 'a').append("c")));
    EXPECT_EQ(watched.text.size(), 20000u);
    EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(Characters, AreHeldBackUntilTheyAreWhole) {
    StopConditions watch = make_watch({});
    EXPECT_EQ(watch.feed(1, "a\xF0\x9F", {}).text, "a");
    EXPECT_EQ(watch.feed(2, "\x98", {}).text, "");
    EXPECT_EQ(watch.feed(3, "\x80!", {}).text, "😀!");
}

TEST(Characters, ThatTheEndCutsAreLeftOut) { EXPECT_EQ(watch_pieces({}, {"ok \xE2\x82"}).text, "ok "); }

TEST(Characters, ThatAreMalformedAreReplaced) {
    EXPECT_EQ(watch_pieces({}, {"a\xFF", "b\xE2\x82", "c\xED\xA0\x80"}).text, "a�b�c���");
}

TEST(TriggerPatterns, EndTheTextWithTheOthersAndMayMatchTheEmptyText) {
    const StoppingSettings settings{
        .patterns = {"!"}, .trigger_patterns = {"", "^\\s*$"}, .filter_patterns = {"\\bDONE\\b"}};
    const Watched triggered = watch_pieces(settings, {"One.", "\n", "\nTwo."});
    EXPECT_EQ(triggered.text, "One.\n");
    EXPECT_EQ(triggered.reason, StopReason::pattern);
    EXPECT_EQ(triggered.detail, "^\\s*$");
    EXPECT_EQ(watch_pieces(settings, {"It is DO", "NE and more"}).text, "It is DONE");
    EXPECT_EQ(watch_pieces(settings, {"It is DO", "NE and more"}).detail, "\\bDONE\\b");
    EXPECT_EQ(watch_pieces(settings, {"Oh! Well."}).detail, "!");
}

/// Tokens of a loop of two that are taken before it is noticed; none of 40.
std::optional<int> noticed_after(const StoppingSettings& settings) {
    StopConditions watch = make_watch(settings);
    for (int token = 1; token <= 40; ++token)
        if (watch.feed(token % 2, "na", {}).reason == StopReason::repetition) return token;
    return std::nullopt;
}

TEST(Repetitions, AreDetectedInAUsualWindowUnlessAnotherIsGiven) {
    EXPECT_EQ(noticed_after({}), std::nullopt);
    EXPECT_EQ(noticed_after({.detect_repetition = true}), 8);
    EXPECT_EQ(noticed_after({.detect_repetition = true, .repetition_count = 9}), 18);
    EXPECT_EQ(noticed_after({.repetition_window = 2, .detect_repetition = true}), std::nullopt)
        << "no run of two tokens is in a window of two";
}

TEST(TimeLimit, CountsFromTheFirstToken) {
    const auto start = steady_clock::time_point(std::chrono::hours(5));
    StopConditions watch = make_watch({.strings = {"world"}, .max_predict_ms = 100});
    EXPECT_EQ(watch.feed(1, "a", start).reason, StopReason::none);
    EXPECT_EQ(watch.feed(2, "b", start + milliseconds(99)).reason, StopReason::none);
    const auto step = watch.feed(3, "c wo", start + milliseconds(100));
    EXPECT_EQ(step.reason, StopReason::time_limit);
    EXPECT_EQ(step.detail, "100 ms");
    EXPECT_EQ(step.text, "c wo") << "what was held back is shown, too";
}

TEST(TimeLimit, OfAnySizeIsTaken) {
    const auto start = steady_clock::time_point(std::chrono::hours(5));
    StopConditions none = make_watch({.max_predict_ms = -1});
    StopConditions long_one = make_watch({.max_predict_ms = std::numeric_limits<std::int64_t>::max()});
    StopConditions zero = make_watch({.max_predict_ms = 0});
    for (StopConditions* watch : {&none, &long_one}) {
        watch->feed(1, "a", start);
        EXPECT_EQ(watch->feed(2, "b", start + std::chrono::hours(1000)).reason, StopReason::none);
    }
    EXPECT_EQ(zero.feed(1, "a", start).reason, StopReason::time_limit);
}

TEST(IndentationStop, EndsBeforeTheFirstLineThatIsIndentedLess) {
    const Watched watched =
        watch_pieces({.n_indent = 4}, {"def f():\n  ", "  a = 1\n\t\t\t\tb\n  ", "return"});
    EXPECT_EQ(watched.text, "def f():\n    a = 1\n\t\t\t\tb\n  ");
    EXPECT_EQ(watched.reason, StopReason::indentation);
}

TEST(IndentationStop, CountsAnEmptyLineAsNotIndented) {
    EXPECT_EQ(watch_pieces({.n_indent = 1}, {"a\n b\n\n c"}).text, "a\n b\n");
}

TEST(IndentationStop, LeavesTheFirstLineAndBlanksAtTheEndAlone) {
    EXPECT_EQ(watch_pieces({.n_indent = 4}, {"first\n  "}).reason, StopReason::none);
}

TEST(IndentationStop, ShowsNoPartOfAStopStringThatEndsThere) {
    const Watched watched = watch_pieces({.strings = {"\nU"}, .n_indent = 2}, {"a\nU"});
    EXPECT_EQ(watched.text, "a");
    EXPECT_EQ(watched.reason, StopReason::stop_string);
}

TEST(PatternStop, ShowsTheMatchAndNothingAfterIt) {
    const Watched watched =
        watch_pieces({.strings = {"42 is"}, .patterns = {"x+y", "\\d+ i"}}, {"it: 4", "2 is it"});
    EXPECT_EQ(watched.text, "it: 42 i");
    EXPECT_EQ(watched.reason, StopReason::pattern);
    EXPECT_EQ(watched.detail, "\\d+ i");
}

TEST(PatternStop, ThatNeedsTheNextCharacterEndsBeforeIt) {
    EXPECT_EQ(watch_pieces({.patterns = {"done\\b"}}, {"undone", "x done", "."}).text, "undonex done");
    EXPECT_EQ(watch_pieces({.patterns = {"^END$"}}, {"END? END\nEN", "D", "\nmore"}).text, "END? END\nEND");
}

TEST(RepetitionStop, EndsALoopOfTokensAndTellsItsText) {
    StopConditions watch = make_watch({.repetition_window = 8, .repetition_count = 3});
    const std::vector<std::pair<int, std::string>> tokens = {{9, "so "}, {1, "go"}, {2, " on "}};
    watch.feed(9, "so ", {});
    for (int i = 0; i < 5; ++i) {
        const auto& [token, piece] = tokens[1 + i % 2];
        EXPECT_EQ(watch.feed(token, piece, {}).reason, StopReason::none) << i;
    }
    const auto step = watch.feed(2, " on ", {});
    EXPECT_EQ(step.reason, StopReason::repetition);
    EXPECT_EQ(step.detail, "go on ");
    EXPECT_EQ(step.text, " on ");
}

TEST(SimilarityStop, EndsAfterASentenceThatResemblesAnEarlierOne) {
    const StoppingSettings settings{.similarity_threshold = 0.8f};
    const Watched watched = watch_pieces(
        settings,
        {"The cat sat on the mat. ", "Dogs like bones. The cat sat", " on the mats", ".\nMore text."});
    EXPECT_EQ(watched.text, "The cat sat on the mat. Dogs like bones. The cat sat on the mats.\n");
    EXPECT_EQ(watched.reason, StopReason::similarity);
    EXPECT_EQ(watched.detail, "The cat sat on the mat.");
}

TEST(StopConditions, RefusesSettingsOutsideTheirRangesAndNamesThem) {
    EXPECT_THAT(error_of({.n_indent = -1}), HasSubstr("n_indent is -1"));
    EXPECT_THAT(error_of({.repetition_window = -3}), HasSubstr("repetition_window is -3"));
    EXPECT_THAT(error_of({.repetition_window = 1 << 30}), HasSubstr("repetition_window is 1073741824"));
    EXPECT_THAT(error_of({.repetition_window = 8, .repetition_count = 1}),
                HasSubstr("repetition_count is 1"));
    EXPECT_THAT(error_of({.similarity_threshold = 1.5f}), HasSubstr("similarity_threshold is 1.5"));
    EXPECT_THAT(error_of({.similarity_threshold = NAN}), HasSubstr("similarity_threshold is nan"));
    EXPECT_THAT(error_of({.similarity_threshold = 0.5f, .similarity_window = 0}),
                HasSubstr("similarity_window is 0"));
}

TEST(StopConditions, TakesEveryNumberThatTheTableLeaves) {
    for (const char* number : {"0", "1", "2", "1000000"}) {
        Warnings warnings;
        std::string json;
        for (const char* name : {"repetition_window", "repetition_count", "similarity_window", "n_indent"})
            json += fmt::format("{}\"{}\": {}", json.empty() ? "{" : ", ", name, number);
        const auto settings =
            with_parameters({}, json + R"(, "similarity_threshold": 0.5})", Level::request, warnings);
        ASSERT_TRUE(settings.ok()) << settings.error().message;
        EXPECT_TRUE(StopConditions::create(settings.value().request.stopping).ok()) << number;
    }
}

}  // namespace
}  // namespace headrace::llm
