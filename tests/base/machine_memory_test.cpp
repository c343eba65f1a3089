#include "base/machine_memory.h"

#include <gtest/gtest.h>

#include "base/written_system.h"

namespace headrace {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr MachineMemory kMachine{.total = 16 * kGiB, .available = 12 * kGiB};

/// The files of one control group.
void put_group(const WrittenSystem& written, const std::string& path, std::uint64_t limit, std::uint64_t used,
               std::uint64_t files = 0) {
    const std::string folder = "/sys/fs/cgroup" + path;
    written.put(folder + "/memory.max", std::to_string(limit) + "\n");
    written.put(folder + "/memory.current", std::to_string(used) + "\n");
    written.put(folder + "/memory.stat",
                "anon 5\nactive_file 77\ninactive_file " + std::to_string(files) + "\nslab 3\n");
}

void put_first_version(const WrittenSystem& written, const std::string& path, std::uint64_t limit,
                       std::uint64_t used, std::uint64_t files = 0) {
    const std::string folder = "/sys/fs/cgroup/memory" + path;
    written.put(folder + "/memory.limit_in_bytes", std::to_string(limit) + "\n");
    written.put(folder + "/memory.usage_in_bytes", std::to_string(used) + "\n");
    written.put(folder + "/memory.stat",
                "cache 5\ninactive_file 1\ntotal_inactive_file " + std::to_string(files) + "\n");
}

TEST(MachineMemory, IsAShareOfTheWhole) {
    const double share = memory_share_in_use();
    EXPECT_GT(share, 0.0) << "this process alone takes some";
    EXPECT_LT(share, 1.0);
}

TEST(MachineMemory, IsWhatTheKernelSaysIsAvailable) {
    const WrittenSystem written(kMachine);
    EXPECT_EQ(machine_memory(written.root()).total, 16 * kGiB);
    EXPECT_EQ(machine_memory(written.root()).available, 12 * kGiB);
    EXPECT_EQ(available_memory(written.root()), 12 * kGiB);
    EXPECT_DOUBLE_EQ(memory_share_in_use(written.root()), 0.25);
}

TEST(MachineMemory, IsWhatIsFreeWhereTheKernelSaysNoMore) {
    const WrittenSystem written;
    written.put("/proc/meminfo", "MemTotal: 4194304 kB\nMemFree: 1048576 kB\n");
    EXPECT_EQ(available_memory(written.root()), kGiB);
    EXPECT_DOUBLE_EQ(memory_share_in_use(written.root()), 0.75);
}

TEST(MachineMemory, IsNotKnownWhereNothingSaysIt) {
    const WrittenSystem nothing;
    EXPECT_EQ(machine_memory(nothing.root()).total, 0u);
    EXPECT_EQ(available_memory(nothing.root()), UINT64_MAX);
    EXPECT_EQ(memory_share_in_use(nothing.root()), 0);
}

TEST(MachineMemory, IsWhatAControlGroupLeaves) {
    const WrittenSystem written(kMachine);
    written.put("/proc/self/cgroup", "0::/\n");
    put_group(written, "", 4 * kGiB, 3 * kGiB, kGiB);
    EXPECT_EQ(machine_memory(written.root()).total, 4 * kGiB);
    EXPECT_EQ(available_memory(written.root()), 2 * kGiB) << "pages of files can be had back";
    EXPECT_DOUBLE_EQ(memory_share_in_use(written.root()), 0.5);
}

TEST(MachineMemory, IsTheMachinesWhereAGroupsLimitIsFurtherAway) {
    const WrittenSystem written(kMachine);
    written.put("/proc/self/cgroup", "0::/\n");
    put_group(written, "", 15 * kGiB, kGiB);
    EXPECT_EQ(available_memory(written.root()), 12 * kGiB);
    EXPECT_EQ(machine_memory(written.root()).total, 15 * kGiB);
}

TEST(MachineMemory, CountsEveryGroupAboveTheProcess) {
    const WrittenSystem written(kMachine);
    written.put("/proc/self/cgroup", "0::/user.slice/app.scope\n");
    put_group(written, "/user.slice/app.scope", 8 * kGiB, kGiB);
    put_group(written, "/user.slice", 6 * kGiB, 5 * kGiB);
    EXPECT_EQ(available_memory(written.root()), kGiB);
    EXPECT_EQ(machine_memory(written.root()).total, 6 * kGiB);
}

TEST(MachineMemory, IsTheMountsGroupWhereThePathIsTheHosts) {
    const WrittenSystem written(kMachine);
    written.put("/proc/self/cgroup", "0::/docker/0123456789ab\n");
    put_group(written, "", 4 * kGiB, kGiB);
    EXPECT_EQ(available_memory(written.root()), 3 * kGiB);
}

TEST(MachineMemory, KnowsGroupsOfTheFirstVersion) {
    const WrittenSystem written(kMachine);
    written.put("/proc/self/cgroup", "11:cpu,cpuacct:/other\n9:memory:/jobs/one\n1:name=systemd:/jobs\n");
    put_first_version(written, "/jobs/one", 5 * kGiB, 4 * kGiB, kGiB);
    put_first_version(written, "", 9223372036854771712u, 9 * kGiB);  // no limit
    EXPECT_EQ(available_memory(written.root()), 2 * kGiB);
    EXPECT_EQ(machine_memory(written.root()).total, 5 * kGiB);
}

TEST(MachineMemory, HasNoLimitWhereAGroupHasNone) {
    const WrittenSystem written(kMachine);
    written.put("/proc/self/cgroup", "0::/\n");
    written.put("/sys/fs/cgroup/memory.max", "max\n");
    written.put("/sys/fs/cgroup/memory.current", std::to_string(9 * kGiB));
    put_first_version(written, "", 9223372036854771712u, 9 * kGiB);
    EXPECT_EQ(available_memory(written.root()), 12 * kGiB);
    EXPECT_EQ(machine_memory(written.root()).total, 16 * kGiB);
}

TEST(MachineMemory, IsUsedUpWhereAGroupIsOverItsLimit) {
    const WrittenSystem written(kMachine);
    put_group(written, "", 2 * kGiB, 3 * kGiB);
    EXPECT_EQ(available_memory(written.root()), 0u);
    EXPECT_DOUBLE_EQ(memory_share_in_use(written.root()), 1.0);
}

}  // namespace
}  // namespace headrace
