// headrace/wasi_nn_guests.h: calls of guests on their memory. What hosts do with it is in tests/wasm.
#include <gtest/gtest.h>

#include "fuzz/guest_calls_target.h"

namespace headrace::fuzz {
namespace {

class GuestCalls : public testing::Test {
protected:
    void SetUp() override {
        if (target.corpus.empty()) GTEST_SKIP() << "the libraries are not built: llama.cpp is not set up";
    }
    const Target target = guest_calls_target();
};

TEST_F(GuestCalls, OfASoundGuestAllSucceed) { EXPECT_TRUE(target.load(target.corpus[0])); }

TEST_F(GuestCalls, OfNoNumberAreRefused) {
    Parts parts = target.corpus[0];
    parts[1][0] = 13;  // one behind the last import
    EXPECT_FALSE(target.load(parts));
}

/// A short run; `make fuzz` runs long ones.
TEST_F(GuestCalls, AreAnsweredWhateverTheirNumbersAndMemoryAre) {
    const Outcome outcome = fuzz_for(target, 1, 2.0);
    EXPECT_GT(outcome.iterations, 100u);
    EXPECT_GT(outcome.accepted, 0u);
    EXPECT_LT(outcome.accepted, outcome.iterations);
}

}  // namespace
}  // namespace headrace::fuzz
