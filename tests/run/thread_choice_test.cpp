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

TEST(ThreadChoice, AFirstRunOnOneThreadSaysNothingOfTheOthers) {
    ThreadChoice choice(200);
    choice.start_alone();
    EXPECT_EQ(choice.choose(2), 1);
    choice.record(1, 3000);  // pages came in
    for (double us : {900.0, 120.0}) {
        EXPECT_EQ(choice.choose(2), 2);
        choice.record(2, us);
    }
}

TEST(ThreadChoice, ASlowRunIsFollowedByOneOnOneThreadThenATrial) {
    ThreadChoice choice;
    choice.record(2, 10000);
    choice.record(2, 300000);
    EXPECT_EQ(choice.choose(2), 1);
    EXPECT_EQ(choice.choose(2), 2);
}

TEST(ThreadChoice, ATrialWaitsWhileAllProcessorsAreTaken) {
    static bool are_taken = false;
    ThreadChoice choice(20000, [](int wanted) { return are_taken && wanted == 2; });
    EXPECT_EQ(choice.choose(2), 2);
    are_taken = true;
    choice.record(2, 300000);
    for (int i = 0; i < 30; ++i) EXPECT_EQ(choice.choose(2), 1);
    are_taken = false;
    int alone = 0;
    while (alone < 100 && choice.choose(2) == 1) ++alone;
    EXPECT_LE(alone, 4);
    choice.record(2, 9000);
    are_taken = true;
    EXPECT_EQ(choice.choose(2), 2) << "the trial was fast";
}

TEST(ThreadChoice, TheFirstRunIsATrial) {
    ThreadChoice choice(20000, [](int) { return true; });
    for (int i = 0; i < 10; ++i) EXPECT_EQ(choice.choose(2), 1);
}

TEST(ThreadChoice, ATrialThatWasPutOffIsAskedForLessOften) {
    static int asked = 0;
    ThreadChoice choice(20000, [](int) { return ++asked > 0; });
    for (int i = 0; i < 15; ++i) EXPECT_EQ(choice.choose(2), 1);
    EXPECT_EQ(asked, 5);  // at runs 0, 1, 3, 7 and 11
}

TEST(ThreadChoice, TheRunAfterOneThatStartsAloneIsATrial) {
    ThreadChoice choice(20000, [](int) { return true; });
    choice.start_alone();
    for (int i = 0; i < 10; ++i) EXPECT_EQ(choice.choose(2), 1);
    EXPECT_EQ(choice.choose(1), 1);
}

TEST(ThreadChoice, WhatWasLearnedGoesOnWithOtherShapes) {
    ThreadChoice choice;
    choice.record(2, 10000);
    choice.record(2, 300000);
    choice.scale(0.1);
    EXPECT_EQ(choice.choose(2), 1);
    EXPECT_EQ(choice.choose(2), 2);
    choice.record(2, 1100);  // as fast as before, of a tenth of the work
    EXPECT_EQ(choice.choose(2), 2);
    choice.record(2, 12000);
    EXPECT_EQ(choice.choose(2), 1);
}

TEST(ThreadChoice, EverySlowTrialDoublesTheWaitAndAFastOneEndsIt) {
    ThreadChoice choice(20000);
    const auto alone_after = [&](double us) {
        choice.record(2, us);
        int alone = 0;
        while (alone < 1000 && choice.choose(2) == 1) ++alone;
        return alone;
    };
    for (int expected : {1, 2, 4, 8, 16, 32, 64, 64}) EXPECT_EQ(alone_after(400000), expected);
    EXPECT_EQ(alone_after(15000), 0);
    EXPECT_EQ(alone_after(400000), 1);
}

TEST(ThreadChoice, ATrialThatIsSlowerThanOneThreadWasIsSlow) {
    ThreadChoice choice;
    const auto alone_after = [&](double us) {
        choice.record(2, us);
        int alone = 0;
        for (; choice.choose(2) == 1; ++alone) choice.record(1, 17000);
        return alone;
    };
    EXPECT_EQ(alone_after(15000), 0);
    EXPECT_EQ(alone_after(27000), 0);  // nothing is known of one thread
    EXPECT_EQ(alone_after(60000), 1);
    EXPECT_EQ(alone_after(27000), 2);
    EXPECT_EQ(alone_after(20000), 0);
}

TEST(ThreadChoice, ATrialThatCostLittleIsRepeatedSoon) {
    ThreadChoice choice(20000);
    const auto alone_after = [&](double us) {
        choice.record(2, us);
        int alone = 0;
        for (; choice.choose(2) == 1; ++alone) choice.record(1, 20000);
        return alone;
    };
    for (int expected : {1, 2, 4, 8, 16}) EXPECT_EQ(alone_after(400000), expected);
    EXPECT_EQ(alone_after(30500), 10);  // half a run lost, of ten
    EXPECT_EQ(alone_after(26500), 6);
}

TEST(ThreadChoice, SmallGraphsAreNotJudgedByNoise) {
    ThreadChoice choice;
    choice.record(2, 30);
    choice.record(2, 900);
    EXPECT_EQ(choice.choose(2), 2);
}

}  // namespace
}  // namespace headrace
