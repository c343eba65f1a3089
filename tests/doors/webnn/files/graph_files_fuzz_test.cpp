#include <gtest/gtest.h>

#include "fuzz/graph_file_targets.h"

namespace headrace::fuzz {
namespace {

/// A short run of each fuzzer; `make fuzz` runs long ones. A crash prints the iteration before it ends the
/// test.
class LoaderFuzz : public ::testing::TestWithParam<std::string> {};

TEST_P(LoaderFuzz, AnswersDamagedFilesWithAGraphOrAnError) {
    for (const Target& target : graph_file_targets()) {
        if (target.name != GetParam()) continue;
        const Outcome outcome = fuzz_for(target, 1, 2.0);
        EXPECT_GT(outcome.iterations, 100u);
        EXPECT_GT(outcome.accepted, 0u);
        EXPECT_LT(outcome.accepted, outcome.iterations);
    }
}

INSTANTIATE_TEST_SUITE_P(Files, LoaderFuzz, ::testing::Values("graph", "text", "json"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace headrace::fuzz
