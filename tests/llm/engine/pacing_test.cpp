#include "llm/engine/pacing.h"

#include <gtest/gtest.h>

namespace headrace::llm {
namespace {

/// Steps of a machine whose kernels compute tiles of 32 tokens, with a time for reading the weights.
double tiled_ms(int tokens, double tile_ms = 30) { return 10 + tile_ms * ((tokens + 31) / 32); }

/// The size of steps after many prompts that nothing else decodes beside.
template <class Time>
int settled_alone(Time ms_of) {
    PromptPacing pacing(150, 512);
    for (int i = 0; i < 100; ++i) pacing.observe(0, pacing.budget(0), ms_of(pacing.budget(0)));
    return pacing.budget(0);
}

TEST(PromptPacing, ReadsAllAtOnceWhereThatIsSoon) {
    EXPECT_EQ(settled_alone([](int tokens) { return 0.25 * tokens; }), 512);
}

TEST(PromptPacing, ReadsShortlyWhereLongStepsAreHardlyFaster) {
    EXPECT_EQ(settled_alone([](int tokens) { return 5 + 2.0 * tokens; }), 64);
    EXPECT_EQ(settled_alone([](int tokens) { return 20.0 * tokens; }), 16) << "none is short enough";
}

TEST(PromptPacing, ReadsInLongStepsWhereThatIsClearlyFasterAndNobodyDecodes) {
    const auto streamed = [](int tokens) { return 400 + 1.0 * tokens; };  // weights come over a slow bus
    EXPECT_GE(settled_alone(streamed), 384);
    PromptPacing pacing(150, 512);
    for (int i = 0; i < 100; ++i) pacing.observe(1, pacing.budget(1), streamed(1 + pacing.budget(1)));
    EXPECT_LT(pacing.budget(1), 384) << "a stream that decodes waits";
}

TEST(PromptPacing, LearnsWhatFitsIntoTheTargetTimeAndFillsTiles) {
    PromptPacing pacing(110, 512);
    for (int i = 0; i < 50; ++i) {
        const int budget = pacing.budget(4);
        pacing.observe(4, budget, tiled_ms(4 + budget));
    }
    EXPECT_EQ(pacing.budget(4), 96 - 4);
}

TEST(PromptPacing, FollowsALongerContextAndComesBackToAShorterOne) {
    PromptPacing pacing(110, 512);
    const auto steps = [&](double tile_ms) {
        for (int i = 0; i < 60; ++i)
            pacing.observe(1, pacing.budget(1), tiled_ms(1 + pacing.budget(1), tile_ms));
        return pacing.budget(1);
    };
    EXPECT_EQ(steps(30), 95);
    EXPECT_EQ(steps(60), 31);
    EXPECT_EQ(steps(30), 95);
}

TEST(PromptPacing, TakesTheSizeThatReadsMostTokensASecond) {
    PromptPacing pacing(300, 512);
    for (int i = 0; i < 50; ++i) {  // from 128 tokens on another kernel is slow
        const int tokens = 1 + pacing.budget(1);
        pacing.observe(1, tokens - 1, tokens >= 128 ? 2.2 * tokens : 1.0 * tokens);
    }
    EXPECT_EQ(pacing.budget(1), 95);
}

TEST(PromptPacing, LetsAPromptAdvanceWhateverStepsTake) {
    PromptPacing pacing(10, 512);
    for (int i = 0; i < 20; ++i) pacing.observe(8, pacing.budget(8), 500);
    EXPECT_EQ(pacing.budget(8), 8);
    EXPECT_EQ(pacing.budget(600), 8) << "more streams than a step has tokens";
}

TEST(ThreadPacing, KeepsThreadsThatGetTheirCores) {
    ThreadPacing pacing(4, true, [] { return 0.0; });
    for (int i = 0; i < 100; ++i) pacing.observe(10, 39.5);
    EXPECT_EQ(pacing.threads(), 4);
}

TEST(ThreadPacing, DropsThreadsThatANeighborKeepsFromRunning) {
    ThreadPacing pacing(2, true, [] { return 0.0; });
    for (int i = 0; i < 20; ++i) pacing.observe(10, 15);
    EXPECT_EQ(pacing.threads(), 1);
    for (int i = 0; i < 1000; ++i) pacing.observe(10, 10);
    EXPECT_EQ(pacing.threads(), 1) << "no core idles";
}

TEST(ThreadPacing, KeepsThreadsThatWereDisturbedOnce) {
    ThreadPacing pacing(2, true, [] { return 0.0; });
    for (int i = 0; i < 20; ++i) {
        pacing.observe(300, 450);  // one long step
        for (int j = 0; j < 10; ++j) pacing.observe(10, 19.5);
        EXPECT_EQ(pacing.threads(), 2);
    }
}

TEST(ThreadPacing, LooksForAnIdleCoreBeforeAPrompt) {
    double idle = 0;
    int looks = 0;
    ThreadPacing pacing(2, true, [&] { return ++looks, idle; });
    const auto read = [&](int steps) {
        for (int i = 0; i < steps; ++i) {
            pacing.expect_prompt();
            pacing.observe(10, 10);
        }
    };
    for (int i = 0; i < 40; ++i) pacing.observe(10, 12);  // several times, so that patience is long
    ASSERT_EQ(pacing.threads(), 1);
    read(20);
    EXPECT_EQ(pacing.threads(), 1) << "no core idles";
    EXPECT_LE(looks, 6) << "what idled in a few milliseconds cannot be told";
    idle = 1.0;
    read(6);
    EXPECT_EQ(pacing.threads(), 2);
}

TEST(ThreadPacing, TakesACoreBackThatIdles) {
    double idle = 0;
    ThreadPacing pacing(2, true, [&] { return idle; });
    for (int i = 0; i < 20; ++i) pacing.observe(10, 12);
    ASSERT_EQ(pacing.threads(), 1);
    idle = 1.0;
    for (int i = 0; i < 200; ++i) pacing.observe(10, 10.0 * pacing.threads());
    EXPECT_EQ(pacing.threads(), 2);
}

TEST(ThreadPacing, LeavesFixedThreadsAlone) {
    ThreadPacing pacing(2, false, [] { return 0.0; });
    for (int i = 0; i < 50; ++i) pacing.observe(10, 5);
    EXPECT_EQ(pacing.threads(), 2);
}

TEST(IdleCores, AreAtMostTheMachines) {
    IdleCores idle;
    idle();
    const double cores = idle();
    EXPECT_GE(cores, 0);
    EXPECT_LE(cores, 4096);
}

}  // namespace
}  // namespace headrace::llm
