#include "llm/engine/prompt_budget.h"

#include <gtest/gtest.h>

namespace headrace::llm {
namespace {

TEST(PromptBudget, GivesAPromptAllWhenNothingElseDecodes) {
    const PromptBudget budget(100, 512);
    EXPECT_EQ(budget.tokens(0), 512);
}

/// Steps of a machine whose kernels compute tiles of 32 tokens, with a time for reading the weights.
double tiled_ms(int tokens, double tile_ms = 30) { return 10 + tile_ms * ((tokens + 31) / 32); }

TEST(PromptBudget, LearnsWhatFitsIntoTheTargetTimeAndFillsTiles) {
    PromptBudget budget(110, 512);
    for (int i = 0; i < 50; ++i) {
        const int prompt = budget.tokens(4);
        budget.observe(4, prompt, tiled_ms(4 + prompt));
    }
    EXPECT_EQ(budget.tokens(4), 96 - 4);
}

TEST(PromptBudget, FollowsALongerContextAndComesBackToAShorterOne) {
    PromptBudget budget(110, 512);
    const auto steps = [&](double tile_ms) {
        for (int i = 0; i < 60; ++i)
            budget.observe(1, budget.tokens(1), tiled_ms(1 + budget.tokens(1), tile_ms));
        return budget.tokens(1);
    };
    EXPECT_EQ(steps(30), 95);
    EXPECT_EQ(steps(60), 31);
    EXPECT_EQ(steps(30), 95);
}

TEST(PromptBudget, TakesTheSizeThatReadsMostTokensASecond) {
    PromptBudget budget(300, 512);
    for (int i = 0; i < 50; ++i) {  // from 128 tokens on another kernel is slow
        const int tokens = 1 + budget.tokens(1);
        budget.observe(1, tokens - 1, tokens >= 128 ? 2.2 * tokens : 1.0 * tokens);
    }
    EXPECT_EQ(budget.tokens(1), 95);
}

TEST(PromptBudget, LetsAPromptAdvanceWhateverStepsTake) {
    PromptBudget budget(10, 512);
    for (int i = 0; i < 20; ++i) budget.observe(8, budget.tokens(8), 500);
    EXPECT_EQ(budget.tokens(8), 8);
    EXPECT_EQ(budget.tokens(600), 8) << "more streams than a step has tokens";
}

}  // namespace
}  // namespace headrace::llm
