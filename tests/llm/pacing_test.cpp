#include "llm/pacing.h"

#include <gtest/gtest.h>

namespace headrace::llm {
namespace {

TEST(PromptPacing, GivesAPromptAllWhenNothingElseDecodes) {
    const PromptPacing pacing(100, 512);
    EXPECT_EQ(pacing.budget(0), 512);
}

TEST(PromptPacing, LearnsHowManyTokensFitIntoTheTargetTime) {
    PromptPacing pacing(100, 512);
    for (int i = 0; i < 50; ++i) {
        pacing.observe(4, 0, 20);  // decoding alone: 20 ms
        const int budget = pacing.budget(4);
        pacing.observe(4, budget, 20 + 4.0 * budget);  // a prompt's token: 4 ms
    }
    EXPECT_NEAR(pacing.budget(4), 20, 2);
}

TEST(PromptPacing, LetsAPromptAdvanceWhateverStepsTake) {
    PromptPacing pacing(10, 512);
    for (int i = 0; i < 20; ++i) pacing.observe(8, 0, 500);
    EXPECT_GE(pacing.budget(8), 1);
}

TEST(ThreadPacing, KeepsThreadsThatGetTheirCores) {
    ThreadPacing pacing(4, true, [] { return 0.0; });
    for (int i = 0; i < 100; ++i) pacing.observe(10, 39.5);
    EXPECT_EQ(pacing.threads(), 4);
}

TEST(ThreadPacing, DropsThreadsThatANeighbourKeepsFromRunning) {
    ThreadPacing pacing(2, true, [] { return 0.0; });
    for (int i = 0; i < 20; ++i) pacing.observe(10, 15);
    EXPECT_EQ(pacing.threads(), 1);
    for (int i = 0; i < 1000; ++i) pacing.observe(10, 10);
    EXPECT_EQ(pacing.threads(), 1) << "no core idles";
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
