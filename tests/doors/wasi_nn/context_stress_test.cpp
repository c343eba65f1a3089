#include "context_stress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace::wasi_nn {
namespace {

TEST(ContextTableThreads, GivesEverySessionItsOwnAnswersUnderCancelsSwapsAndBadInput) {
    const StressReport report = run_stress({.requests = 160, .sessions = 12, .threads = 6, .seed = 7});
    EXPECT_THAT(report.faults, testing::IsEmpty());
    EXPECT_TRUE(report.has_few_near_ties()) << report.near_ties << " of " << report.answers;
    EXPECT_GT(report.answers, 60);
    EXPECT_GT(report.cancelled, 0);
    EXPECT_GT(report.refused, 0);
    EXPECT_GT(report.swaps, 0);
    for (const StressReport::Memory& memory : report.memory)
        EXPECT_GT(memory.allocated, 0u) << "under a sanitizer, too";
}

}  // namespace
}  // namespace headrace::wasi_nn
