#include "run/devices.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(Devices, TheCpuIsFoundByEitherName) {
    const auto by_role = find_device("cpu");
    ASSERT_TRUE(by_role.ok());
    EXPECT_TRUE(by_role.value().is_cpu);
    const auto by_name = find_device(by_role.value().name);
    ASSERT_TRUE(by_name.ok());
    EXPECT_EQ(by_name.value().handle, by_role.value().handle);
}

TEST(Devices, AutomaticChoiceTakesALocalGpuOrTheCpu) {
    const auto device = find_device("auto");
    ASSERT_TRUE(device.ok());
    EXPECT_EQ(device.value().is_cpu, !has_gpu());
}

}  // namespace
}  // namespace headrace
