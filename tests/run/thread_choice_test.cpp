#include "run/thread_choice.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(ThreadChoice, TakesWhatIsWantedWhileRunsAreAsFastAsEver) {
    ThreadChoice choice;
    for (double us : {10000.0, 9000.0, 20000.0, 25000.0}) {
        EXPECT_EQ(choice.choose(2), 2);
        choice.record(2, us);
    }
}

TEST(ThreadChoice, ASlowRunIsFollowedByRunsOnOneThreadThenATrial) {
    ThreadChoice choice;
    choice.record(2, 10000);
    choice.record(2, 300000);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(choice.choose(2), 1);
    EXPECT_EQ(choice.choose(2), 2);
}

TEST(ThreadChoice, EverySlowTrialDoublesTheWaitAndAFastOneEndsIt) {
    ThreadChoice choice(20000);
    const auto alone_after = [&](double us) {
        choice.record(2, us);
        int alone = 0;
        while (alone < 1000 && choice.choose(2) == 1) ++alone;
        return alone;
    };
    for (int expected : {4, 8, 16, 32, 64, 64}) EXPECT_EQ(alone_after(400000), expected);
    EXPECT_EQ(alone_after(15000), 0);
    EXPECT_EQ(alone_after(400000), 4);
}

TEST(ThreadChoice, SmallGraphsAreNotJudgedByNoise) {
    ThreadChoice choice;
    choice.record(2, 30);
    choice.record(2, 900);
    EXPECT_EQ(choice.choose(2), 2);
}

}  // namespace
}  // namespace headrace
