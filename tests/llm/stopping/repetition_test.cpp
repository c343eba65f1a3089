#include "llm/stopping/repetition.h"

#include <gtest/gtest.h>

#include <random>

namespace headrace::llm {
namespace {

/// The position of the token that completes a loop; none without one.
std::optional<std::size_t> first_loop(int window, int count, const std::vector<int>& tokens) {
    auto repetition = Repetition::create(window, count);
    for (std::size_t i = 0; i < tokens.size(); ++i)
        if (repetition.value().feed(tokens[i], "")) return i;
    return std::nullopt;
}

/// The same by comparing whole runs.
std::optional<std::size_t> expected_loop(int window, int count, const std::vector<int>& tokens) {
    for (std::size_t end = 1; end <= tokens.size(); ++end)
        for (std::size_t run = 1; run <= static_cast<std::size_t>(window / 2); ++run) {
            const std::size_t needed = run * static_cast<std::size_t>(count);
            if (needed > end) continue;
            bool is_loop = true;
            for (std::size_t i = end - needed; i + run < end; ++i) is_loop &= tokens[i] == tokens[i + run];
            if (is_loop) return end - 1;
        }
    return std::nullopt;
}

TEST(Repetition, IsOffWithoutAWindow) { EXPECT_EQ(first_loop(0, 4, std::vector<int>(100, 7)), std::nullopt); }

TEST(Repetition, FindsRunsUpToHalfTheWindow) {
    EXPECT_EQ(first_loop(6, 2, {5, 1, 2, 3, 1, 2, 3}), 6u);
    EXPECT_EQ(first_loop(5, 2, {5, 1, 2, 3, 1, 2, 3}), std::nullopt);
    EXPECT_EQ(first_loop(6, 3, {1, 2, 3, 1, 2, 3, 1, 2, 3}), 8u) << "more runs than the window holds";
}

TEST(Repetition, FindsWhatComparingWholeRunsFinds) {
    std::mt19937 random(3);
    for (int i = 0; i < 2000; ++i) {
        std::vector<int> tokens(40);
        for (int& token : tokens) token = static_cast<int>(random() % 3);
        const int window = 2 + static_cast<int>(random() % 12), count = 3 + static_cast<int>(random() % 3);
        EXPECT_EQ(first_loop(window, count, tokens), expected_loop(window, count, tokens));
    }
}

TEST(Repetition, TellsTheTextOfTheRun) {
    auto repetition = Repetition::create(4, 2);
    for (const auto& [token, piece] :
         std::vector<std::pair<int, std::string>>{{1, "la"}, {2, "lo "}, {1, "la"}})
        EXPECT_FALSE(repetition.value().feed(token, piece));
    EXPECT_TRUE(repetition.value().feed(2, "lo "));
    EXPECT_EQ(repetition.value().run(), "lalo ");
}

}  // namespace
}  // namespace headrace::llm
