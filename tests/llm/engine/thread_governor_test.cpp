#include "llm/engine/thread_governor.h"

#include <gtest/gtest.h>

namespace headrace::llm {
namespace {

TEST(ThreadGovernor, KeepsThreadsThatGetTheirCores) {
    ThreadGovernor governor(4, true, [] { return 0.0; });
    for (int i = 0; i < 100; ++i) governor.observe(10, 39.5);
    EXPECT_EQ(governor.threads(), 4);
}

TEST(ThreadGovernor, DropsThreadsThatANeighborKeepsFromRunning) {
    ThreadGovernor governor(2, true, [] { return 0.0; });
    for (int i = 0; i < 20; ++i) governor.observe(10, 15);
    EXPECT_EQ(governor.threads(), 1);
    for (int i = 0; i < 1000; ++i) governor.observe(10, 10);
    EXPECT_EQ(governor.threads(), 1) << "no core idles";
}

TEST(ThreadGovernor, KeepsThreadsThatWereDisturbedOnce) {
    ThreadGovernor governor(2, true, [] { return 0.0; });
    for (int i = 0; i < 20; ++i) {
        governor.observe(300, 450);  // one long step
        for (int j = 0; j < 10; ++j) governor.observe(10, 19.5);
        EXPECT_EQ(governor.threads(), 2);
    }
}

TEST(ThreadGovernor, LooksForAnIdleCoreBeforeAPrompt) {
    double idle = 0;
    int looks = 0;
    ThreadGovernor governor(2, true, [&] { return ++looks, idle; });
    const auto read = [&](int steps) {
        for (int i = 0; i < steps; ++i) {
            governor.expect_prompt();
            governor.observe(10, 10);
        }
    };
    for (int i = 0; i < 40; ++i) governor.observe(10, 12);  // several times, so that patience is long
    ASSERT_EQ(governor.threads(), 1);
    read(20);
    EXPECT_EQ(governor.threads(), 1) << "no core idles";
    EXPECT_LE(looks, 6) << "what idled in a few milliseconds cannot be told";
    idle = 1.0;
    read(6);
    EXPECT_EQ(governor.threads(), 2);
}

TEST(ThreadGovernor, TakesACoreBackThatIdles) {
    double idle = 0;
    ThreadGovernor governor(2, true, [&] { return idle; });
    for (int i = 0; i < 20; ++i) governor.observe(10, 12);
    ASSERT_EQ(governor.threads(), 1);
    idle = 1.0;
    for (int i = 0; i < 200; ++i) governor.observe(10, 10.0 * governor.threads());
    EXPECT_EQ(governor.threads(), 2);
}

TEST(ThreadGovernor, LeavesFixedThreadsAlone) {
    ThreadGovernor governor(2, false, [] { return 0.0; });
    for (int i = 0; i < 50; ++i) governor.observe(10, 5);
    EXPECT_EQ(governor.threads(), 2);
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
