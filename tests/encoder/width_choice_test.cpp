#include "encoder/width_choice.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

/// Of so many runs, those that took all cores. us: what a token takes on one core and on all.
int wide_runs(WidthChoice& choice, int runs, double narrow_us, double wide_us) {
    int count = 0;
    for (int i = 0; i < runs; ++i) {
        const bool wide = choice.is_wide();
        count += wide;
        choice.record(wide, 20, 20 * (wide ? wide_us : narrow_us));
    }
    return count;
}

TEST(WidthChoice, TakesWhicheverIsFaster) {
    WidthChoice idle, busy;
    EXPECT_GT(wide_runs(idle, 1000, 200, 110), 980);
    EXPECT_LT(wide_runs(busy, 1000, 200, 2000), 12) << "and tries the other one rarely";
}

TEST(WidthChoice, ChangesWhenTheMachineDoes) {
    WidthChoice choice;
    wide_runs(choice, 300, 200, 110);
    EXPECT_LT(wide_runs(choice, 300, 200, 2000), 30) << "another process took a core";
    wide_runs(choice, 600, 200, 110);
    EXPECT_GT(wide_runs(choice, 100, 200, 110), 90) << "and gave it back";
}

}  // namespace
}  // namespace headrace
