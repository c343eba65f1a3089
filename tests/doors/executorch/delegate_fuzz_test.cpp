#include <gtest/gtest.h>

#include "fuzz/delegate_target.h"

namespace headrace::fuzz {
namespace {

/// A short run; `make fuzz` runs long ones.
TEST(DelegateFuzz, AnswersDamagedBlobsWithAResultOrAnError) {
    const Outcome outcome = fuzz_for(delegate_target(), 1, 2.0);
    EXPECT_GT(outcome.iterations, 100u);
    EXPECT_GT(outcome.accepted, 0u);
    EXPECT_LT(outcome.accepted, outcome.iterations);
}

}  // namespace
}  // namespace headrace::fuzz
