#include <gtest/gtest.h>

#include "fuzz/rpc_host_target.h"

namespace headrace::fuzz {
namespace {

/// A short run; `make fuzz` runs long ones.
TEST(RpcHostFuzz, DamagedRepliesGiveAResultOrAnError) {
    const Outcome outcome = fuzz_for(rpc_host_target(), 1, 2.0);
    EXPECT_GT(outcome.iterations, 10u);
    EXPECT_LT(outcome.accepted, outcome.iterations);
}

}  // namespace
}  // namespace headrace::fuzz
