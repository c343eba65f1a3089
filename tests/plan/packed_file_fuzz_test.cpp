#include <gtest/gtest.h>

#include "fuzz/packed_file_target.h"

namespace headrace::fuzz {
namespace {

/// A short run; `make fuzz` runs long ones.
TEST(PackedFileFuzz, AnswersDamagedFilesWithWholeWeightsOrAnError) {
    const Outcome outcome = fuzz_for(packed_file_target(), 1, 2.0);
    EXPECT_GT(outcome.iterations, 100u);
    EXPECT_GT(outcome.accepted, 0u);
    EXPECT_LT(outcome.accepted, outcome.iterations);
}

}  // namespace
}  // namespace headrace::fuzz
