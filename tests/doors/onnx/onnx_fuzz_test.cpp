#include <gtest/gtest.h>

#include "fuzz/onnx_target.h"

namespace headrace::fuzz {
namespace {

/// A short run; `make fuzz` runs long ones.
TEST(OnnxFuzz, AnswersDamagedModelsWithAGraphOrAnError) {
    const Outcome outcome = fuzz_for(onnx_target(), 1, 2.0);
    EXPECT_GT(outcome.iterations, 100u);
    EXPECT_GT(outcome.accepted, 0u);
    EXPECT_LT(outcome.accepted, outcome.iterations);
}

}  // namespace
}  // namespace headrace::fuzz
