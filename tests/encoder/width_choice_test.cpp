#include "encoder/width_choice.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

/// How many of so many runs took all cores. us: what a token takes on one core and on all.
int wide_runs(WidthChoice& choice, int runs, double narrow_us, double wide_us, std::int64_t tokens = 20) {
    int count = 0;
    for (int i = 0; i < runs; ++i) {
        const bool wide = choice.is_wide(tokens);
        count += wide;
        choice.record(wide, tokens, static_cast<double>(tokens) * (wide ? wide_us : narrow_us));
    }
    return count;
}

TEST(WidthChoice, TakesWhicheverIsFaster) {
    WidthChoice idle, busy;
    EXPECT_GT(wide_runs(idle, 1000, 200, 110), 980);
    EXPECT_LT(wide_runs(busy, 1000, 200, 2000), 25) << "and tries the other one rarely";
}

TEST(WidthChoice, ChangesWhenTheMachineDoes) {
    WidthChoice choice;
    wide_runs(choice, 300, 200, 110);
    EXPECT_LT(wide_runs(choice, 300, 200, 2000), 30) << "another process took a core";
    wide_runs(choice, 600, 200, 110);
    EXPECT_GT(wide_runs(choice, 100, 200, 110), 90) << "and gave it back";
}

TEST(WidthChoice, KnowsFewTokensFromMany) {
    WidthChoice choice;
    int few = 0, many = 0;
    for (int i = 0; i < 300; ++i) {
        few += wide_runs(choice, 1, 200, 210, 10);
        many += wide_runs(choice, 1, 200, 110, 200);
    }
    EXPECT_LT(few, 30);
    EXPECT_GT(many, 270);
}

/// How many of 1,000 runs took all cores, where every so-manieth of them waits for a core.
int wide_runs_that_wait(int every, double wait_us) {
    WidthChoice choice;
    int count = 0;
    for (int i = 0; i < 1000; ++i) {
        const bool waits = choice.is_wide(20) && count % every == 0;
        count += wide_runs(choice, 1, 200, waits ? wait_us : 110);
    }
    return count;
}

TEST(WidthChoice, IsNotChangedByARunThatWaitedOrPlanned) {
    EXPECT_GT(wide_runs_that_wait(15, 2000), 900);
    EXPECT_GT(wide_runs_that_wait(5, 200), 900);
    EXPECT_LT(wide_runs_that_wait(2, 2000), 200) << "but by many that wait";
}

}  // namespace
}  // namespace headrace
