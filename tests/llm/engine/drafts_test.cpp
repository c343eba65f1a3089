#include "llm/engine/drafts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace::llm {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const SpeculationSettings kOn{.enabled = true, .n_max = 8, .ngram_size = 2};

TEST(Drafts, ProposeWhatFollowedTheSameTokensBefore) {
    Drafts drafts(kOn);
    EXPECT_THAT(drafts.propose({1, 2, 3, 4, 5, 6, 7, 1, 2}, 8), ElementsAre(3, 4, 5, 6));
}

TEST(Drafts, ContinueAShortPeriodBeyondTheHistory) {
    Drafts drafts(kOn);
    EXPECT_THAT(drafts.propose({9, 1, 2, 1, 2, 1, 2}, 4), ElementsAre(1, 2, 1, 2));
}

TEST(Drafts, AreEmptyWithoutARepetitionOrWhenOff) {
    Drafts drafts(kOn), off({.enabled = false});
    EXPECT_THAT(drafts.propose({1, 2, 3, 4, 5}, 8), IsEmpty());
    EXPECT_THAT(drafts.propose({1}, 8), IsEmpty());
    EXPECT_THAT(drafts.propose({1, 2, 3, 1, 2}, 0), IsEmpty());
    EXPECT_THAT(off.propose({1, 2, 3, 1, 2}, 8), IsEmpty());
}

TEST(Drafts, GrowWhileTheyAreRight) {
    Drafts drafts(kOn);
    const Tokens history{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 1, 2};
    EXPECT_EQ(drafts.propose(history, 8).size(), 4u);
    drafts.judge(4, 4);
    EXPECT_EQ(drafts.propose(history, 8).size(), 8u);
    drafts.judge(8, 1);
    EXPECT_EQ(drafts.propose(history, 8).size(), 2u);
}

TEST(Drafts, PauseWhenTheModelSeldomAgreesAndTryAgainLater) {
    Drafts drafts(kOn);
    const Tokens history{1, 2, 3, 4, 5, 6, 1, 2};
    int proposed = 0;
    for (int i = 0; i < 100; ++i) {
        const std::size_t size = drafts.propose(history, 8).size();
        if (size) ++proposed;
        drafts.judge(static_cast<int>(size), 0);
    }
    EXPECT_GT(proposed, 5);
    EXPECT_LT(proposed, 40);
}

TEST(Drafts, ForgetAHistoryThatWasCut) {
    Drafts drafts(kOn);
    EXPECT_FALSE(drafts.propose({1, 2, 3, 4, 5, 6, 1, 2}, 8).empty());
    drafts.forget();
    EXPECT_THAT(drafts.propose({7, 8, 9, 1, 2}, 8), IsEmpty());
}

}  // namespace
}  // namespace headrace::llm
