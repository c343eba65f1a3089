#include "base/machine_memory.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(MachineMemory, IsAShareOfTheWhole) {
    const double share = memory_share_in_use();
    EXPECT_GT(share, 0.0) << "this process alone takes some";
    EXPECT_LT(share, 1.0);
}

}  // namespace
}  // namespace headrace
