#include <gtest/gtest.h>

#include <random>

#include "base/utf8.h"
#include "llm/stopping/stop_conditions.h"
#include "llm/watched_text.h"

namespace headrace::llm {
namespace {

class RandomTexts : public ::testing::TestWithParam<unsigned> {
protected:
    std::size_t below(std::size_t n) { return random_() % n; }

    std::string text(std::size_t characters) {
        static const std::vector<std::string> kAlphabet = {"a",  "b", "a", "b", " ", ".",
                                                           "\n", "é", "€", "😀", "ab"};
        std::string result;
        for (std::size_t i = 0; i < characters; ++i) result += kAlphabet[below(kAlphabet.size())];
        return result;
    }

    /// Cut anywhere, within characters, too, and with empty pieces.
    std::vector<std::string> cut(const std::string& text) {
        std::vector<std::string> pieces;
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t size = below(6);
            pieces.push_back(text.substr(at, size));
            at += pieces.back().size();
        }
        return pieces;
    }

    std::vector<std::string> strings() {
        std::vector<std::string> result(below(5));
        for (std::string& string : result) string = text(below(5));
        return result;
    }

    std::mt19937 random_{GetParam()};
};

/// The text up to the stop string that is complete first, the longest of those that end together.
std::string before_stop(const std::string& text, const std::vector<std::string>& strings) {
    for (std::size_t end = 1; end <= text.size(); ++end) {
        std::size_t longest = 0;
        for (const std::string& string : strings)
            if (string.size() <= end && text.compare(end - string.size(), string.size(), string) == 0)
                longest = std::max(longest, string.size());
        if (longest > 0) return text.substr(0, end - longest);
    }
    return text;
}

TEST_P(RandomTexts, AreShownUpToTheEarliestStopString) {
    for (int i = 0; i < 200; ++i) {
        const std::string text = this->text(30);
        const StoppingSettings settings{.strings = strings()};
        EXPECT_EQ(watch_pieces(settings, cut(text)).text, before_stop(text, settings.strings)) << text;
    }
}

TEST_P(RandomTexts, StopAtTheSamePlaceHoweverTheyAreCut) {
    const std::vector<std::string> patterns = {"a.b$",      "\\bé",   "(ab|€)+😀",
                                               "\\s\\s\\s", "^a+\\b", "[^a-z]{4}"};
    int stopped = 0;
    for (int i = 0; i < 200; ++i) {
        const std::string text = this->text(40);
        const StoppingSettings settings{.strings = {this->text(3)},
                                        .patterns = {patterns[below(6)], patterns[below(6)]},
                                        .n_indent = static_cast<int>(below(2)),
                                        .similarity_threshold = 0.9f};
        const Watched whole = watch_pieces(settings, {text});
        EXPECT_EQ(watch_pieces(settings, cut(text)), whole) << text;
        EXPECT_EQ(watch_pieces(settings, single_bytes(text)), whole) << text;
        stopped += whole.reason != StopReason::none;
    }
    EXPECT_GT(stopped, 20);
    EXPECT_LT(stopped, 200);
}

TEST_P(RandomTexts, AreShownInWholeCharactersAndNeverRunAhead) {
    for (int i = 0; i < 200; ++i) {
        const std::string text = this->text(30);
        StopConditions watch = make_watch({.strings = strings(), .patterns = {"€.a"}});
        std::string fed, shown;
        for (const std::string& piece : cut(text)) {
            const auto step = watch.feed(0, piece, {});
            fed += piece;
            shown += step.text;
            EXPECT_FALSE(find_invalid_utf8(step.text));
            EXPECT_EQ(fed.substr(0, shown.size()), shown);
            if (step.reason != StopReason::none) break;
        }
        EXPECT_FALSE(find_invalid_utf8(watch.finish()));
    }
}

TEST_P(RandomTexts, OfAnyBytesAreShownAsValidUtf8HoweverTheyAreCut) {
    for (int i = 0; i < 200; ++i) {
        std::string bytes;
        for (std::size_t n = below(40); n > 0; --n)
            bytes += below(2) ? "ab \n\xC3"[below(5)] : static_cast<char>(0x80 + below(128));
        const StoppingSettings settings{.strings = {"ab", "\uFFFD\uFFFD\uFFFD\uFFFD"}, .patterns = {"b\\W"}};
        const Watched whole = watch_pieces(settings, {bytes});
        EXPECT_EQ(watch_pieces(settings, cut(bytes)), whole);
        EXPECT_FALSE(find_invalid_utf8(whole.text));
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomTexts, ::testing::Range(0u, 8u));

}  // namespace
}  // namespace headrace::llm
