#include "backends/mlx/memory/machine_memory.h"

#include <gtest/gtest.h>

#include "backends/mlx/device.h"
#include "backends/mlx/workbench.h"
#include "base/written_system.h"

namespace headrace::mlx {
namespace {

constexpr std::size_t kGiB = std::size_t{1} << 30;

TEST(HostMemory, IsTheMachines) {
    const WrittenSystem written({.total = 8 * kGiB, .available = 3 * kGiB});
    EXPECT_EQ(host_memory(written.root()).total, 8 * kGiB);
    EXPECT_EQ(host_memory(written.root()).free, 3 * kGiB);
}

TEST(HostMemory, IsWhatAControlGroupLeaves) {
    const WrittenSystem written({.total = 8 * kGiB, .available = 6 * kGiB});
    written.put("/proc/self/cgroup", "0::/\n");
    written.put("/sys/fs/cgroup/memory.max", std::to_string(2 * kGiB));
    written.put("/sys/fs/cgroup/memory.current", std::to_string(kGiB / 2));
    EXPECT_EQ(host_memory(written.root()).total, 2 * kGiB);
    EXPECT_EQ(host_memory(written.root()).free, kGiB + kGiB / 2);
}

TEST(HostMemory, IsAllThereIsWhereTheSystemDoesNotSay) {
    const WrittenSystem nothing;
    EXPECT_GT(host_memory(nothing.root()).total, 0u);
    EXPECT_EQ(host_memory(nothing.root()).free, host_memory(nothing.root()).total);
}

TEST(DeviceMemory, IsWhatGgmlIsTold) {
    std::size_t free = 0, total = 0;
    ggml_backend_dev_memory(device(), &free, &total);
    EXPECT_EQ(total, device_memory().total);
    EXPECT_GT(free, 0u);
    EXPECT_LE(free, total);
}

}  // namespace
}  // namespace headrace::mlx
