#include "llm/stopping/sentence_similarity.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/utf8.h"

namespace headrace::llm {
namespace {

/// The sentences of a text as they are compared: the first of each pair that the measure is asked about is
/// earlier.
std::vector<std::string> sentences_of(std::string_view text) {
    std::vector<std::string> result;
    auto similarity = SentenceSimilarity::create(1, 64, [&](std::string_view, std::string_view later) {
        if (result.empty() || result.back() != later) result.emplace_back(later);
        return 0.0f;
    });
    std::string whole = "This is first. " + std::string(text);
    for (std::string_view rest = whole; const auto point = first_code_point(rest);) {
        EXPECT_FALSE(similarity.value().feed(point->value, rest.substr(0, point->size)));
        rest.remove_prefix(point->size);
    }
    return result;
}

bool resembles(std::string_view text, float threshold, int window) {
    auto similarity = SentenceSimilarity::create(threshold, window, nullptr);
    bool result = false;
    for (const char c : text) result |= similarity.value().feed(static_cast<char32_t>(c), {&c, 1});
    return result;
}

TEST(TrigramSimilarity, IsTheShareOfCommonTrigrams) {
    EXPECT_EQ(trigram_similarity("abcd", "abcd"), 1);
    EXPECT_EQ(trigram_similarity("abcd", "wxyz"), 0);
    // " abcd " has 4 trigrams, " abce " too, and " ab" and "abc" are common: 2 of 6.
    EXPECT_FLOAT_EQ(trigram_similarity("abcd", "abce"), 2.0f / 6);
    EXPECT_EQ(trigram_similarity("", "..."), 0);
}

TEST(TrigramSimilarity, PassesOverCasePunctuationAndSpacing) {
    EXPECT_EQ(trigram_similarity("Hello, World!", " hello   world"), 1);
    EXPECT_LT(trigram_similarity("hello world", "helloworld"), 1);
    EXPECT_EQ(trigram_similarity("Grüße, Zoë", "grüße zoë"), 1);
}

TEST(SentenceSimilarity, SplitsAtTerminatorsWithASpaceAndAtNewlines) {
    EXPECT_EQ(
        sentences_of("Pi is 3.14 or so. Is it really? Yes it is! A line without end\nnext line\nan end"),
        (std::vector<std::string>{"Pi is 3.14 or so.", "Is it really?", "A line without end", "next line"}))
        << "\"Yes it is!\" has 7 letters: too few to compare";
    EXPECT_EQ(sentences_of("我喜欢吃苹果和香蕉。他不喜欢吃苹果吗？"),
              (std::vector<std::string>{"我喜欢吃苹果和香蕉。", "他不喜欢吃苹果吗？"}));
}

TEST(SentenceSimilarity, TakesALongTextWithoutAnEndAsASentence) {
    const std::vector<std::string> sentences = sentences_of(std::string(3000, 'x') + std::string(3000, 'y'));
    ASSERT_EQ(sentences.size(), 2u);
    EXPECT_EQ(sentences[0].size(), SentenceSimilarity::kMaxSentence);
}

TEST(SentenceSimilarity, ComparesWithAsManySentencesAsTheWindowHas) {
    const std::string text = "First of them all. Second comes now. Third is here. First of them all.\n";
    EXPECT_TRUE(resembles(text, 1, 3));
    EXPECT_FALSE(resembles(text, 1, 2));
}

TEST(SentenceSimilarity, LeavesShortSentencesAlone) {
    EXPECT_FALSE(resembles("- Yes.\n- No.\n- Yes.\n- No.\n", 0.5f, 8));
}

TEST(SentenceSimilarity, IsNotMetByAMeasureThatIsNoNumber) {
    auto similarity =
        SentenceSimilarity::create(0.1f, 8, [](std::string_view, std::string_view) { return std::nanf(""); });
    bool found = false;
    for (const char c : std::string("The same again.\nThe same again.\n"))
        found |= similarity.value().feed(static_cast<char32_t>(c), {&c, 1});
    EXPECT_FALSE(found);
}

}  // namespace
}  // namespace headrace::llm
