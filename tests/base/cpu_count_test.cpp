#include "base/cpu_count.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/written_system.h"

namespace headrace {
namespace {

TEST(CpuCount, IsThatOfTheMachineWithoutAQuota) {
    const WrittenSystem nothing;
    EXPECT_EQ(usable_cpus(8, nothing.root()), 8);
    EXPECT_EQ(usable_cpus(0, nothing.root()), 1) << "a machine that does not say has one";
    EXPECT_GE(usable_cpus(), 1);
    EXPECT_LE(usable_cpus(), static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
}

TEST(CpuCount, IsWhatTheQuotaOfAControlGroupAllows) {
    const WrittenSystem written;
    written.put("/proc/self/cgroup", "0::/\n");
    written.put("/sys/fs/cgroup/cpu.max", "max 100000\n");
    EXPECT_EQ(usable_cpus(8, written.root()), 8);
    written.put("/sys/fs/cgroup/cpu.max", "150000 100000\n");
    EXPECT_EQ(usable_cpus(8, written.root()), 2) << "one and a half need two";
    EXPECT_EQ(usable_cpus(1, written.root()), 1);
    written.put("/sys/fs/cgroup/cpu.max", "10000 100000\n");
    EXPECT_EQ(usable_cpus(8, written.root()), 1);
}

TEST(CpuCount, CountsTheQuotasOfTheGroupsAboveToo) {
    const WrittenSystem written;
    written.put("/proc/self/cgroup", "0::/jobs/one\n");
    written.put("/sys/fs/cgroup/jobs/one/cpu.max", "800000 100000\n");
    written.put("/sys/fs/cgroup/jobs/cpu.max", "300000 100000\n");
    EXPECT_EQ(usable_cpus(16, written.root()), 3);
}

TEST(CpuCount, KnowsTheFirstVersionOfControlGroups) {
    const WrittenSystem written;
    written.put("/proc/self/cgroup", "4:memory:/\n3:cpu,cpuacct:/jobs\n");
    written.put("/sys/fs/cgroup/cpu/jobs/cpu.cfs_quota_us", "-1\n");
    written.put("/sys/fs/cgroup/cpu/jobs/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(usable_cpus(16, written.root()), 16);
    written.put("/sys/fs/cgroup/cpu/jobs/cpu.cfs_quota_us", "400000\n");
    EXPECT_EQ(usable_cpus(16, written.root()), 4);
}

TEST(CpuCount, PassesOverFilesThatSayNothing) {
    const WrittenSystem written;
    written.put("/proc/self/cgroup", "0::/\n");
    written.put("/sys/fs/cgroup/cpu.max", "");
    EXPECT_EQ(usable_cpus(4, written.root()), 4);
    written.put("/sys/fs/cgroup/cpu.max", "200000 0\n");
    EXPECT_EQ(usable_cpus(4, written.root()), 4);
}

bool are_taken_at(int wanted, int cpus, const char* load) {
    return are_cpus_taken(wanted, cpus, [=] { return std::string(load); });
}

TEST(CpuCount, CpusAreTakenWhereThreadsOfOthersLeaveFewerThanAreWanted) {
    EXPECT_TRUE(are_taken_at(1, 2, "15.75 15.29 12.03 3/225 19203"));
    EXPECT_FALSE(are_taken_at(1, 2, "15.75 15.29 12.03 2/225 19203"));
    EXPECT_TRUE(are_taken_at(2, 2, "15.75 15.29 12.03 2/225 19203"));
    EXPECT_FALSE(are_taken_at(2, 2, "15.75 15.29 12.03 1/225 19203"));
    EXPECT_FALSE(are_taken_at(8, 16, "15.75 15.29 12.03 9/225 19203"));
    for (const char* nothing : {"", "0.1", "0.1 0.2 0.3 x/y 1", "/ 3"})
        EXPECT_FALSE(are_taken_at(1, 1, nothing)) << nothing;
}

TEST(CpuCount, CpusAreNotTakenByWhoFallsAsleepAMomentLater) {
    int looks = 0;
    const auto load = [&] { return std::string(++looks == 1 ? "0 0 0 2/9 1" : "0 0 0 1/9 1"); };
    EXPECT_FALSE(are_cpus_taken(2, 2, load));
    EXPECT_EQ(looks, 2);
}

}  // namespace
}  // namespace headrace
