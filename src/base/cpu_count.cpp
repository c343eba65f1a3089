#include "base/cpu_count.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <climits>
#include <cstdint>
#include <fstream>
#include <optional>
#include <thread>
#ifdef __linux__
#include <sched.h>
#endif

#include "base/control_groups.h"

namespace headrace {
namespace {

/// The CPU time that a group may take in a time, as a number of CPUs.
std::optional<int> quota_of(const ControlGroup& group) {
    std::int64_t quota = 0, period = 0;
    if (group.version == 2) {
        std::ifstream(group.folder + "/cpu.max") >> quota >> period;  // "max 100000" without a limit
    } else {
        std::ifstream(group.folder + "/cpu.cfs_quota_us") >> quota;  // -1 without one
        std::ifstream(group.folder + "/cpu.cfs_period_us") >> period;
    }
    if (quota <= 0 || period <= 0) return std::nullopt;
    const std::int64_t whole = quota / period + (quota % period != 0);
    return static_cast<int>(std::min<std::int64_t>(whole, 1 << 20));
}

int cpus_of_affinity() {
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
#endif
    return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

int usable_cpus(int all, const std::string& root) {
    int count = std::max(1, all);
    for (const ControlGroup& group : control_groups("cpu", root))
        if (const auto quota = quota_of(group)) count = std::min(count, *quota);
    return count;
}

bool are_cpus_taken(int wanted, int cpus, const std::function<std::string()>& load) {
    // 0.20 0.18 0.12 3/80 11206: three of 80 threads run or wait for a CPU, of which this is one
    const auto look = [&] {
        const std::string line = load();
        const std::size_t slash = line.find('/'), blank = line.rfind(' ', slash);
        int running = 0;
        if (slash == std::string::npos || blank == std::string::npos) return false;
        std::from_chars(line.data() + blank + 1, line.data() + slash, running);
        return running - 1 + wanted > cpus;
    };
    // Who handed the run over to this thread, as Node's thread of JavaScript does, is awake a moment longer.
    constexpr auto kMoment = std::chrono::microseconds(50);
    if (!look()) return false;
    std::this_thread::sleep_for(kMoment);
    return look();
}

bool are_cpus_taken(int wanted) {
    const auto load = [] {
        std::string line;
        std::getline(std::ifstream("/proc/loadavg"), line);
        return line;
    };
    return are_cpus_taken(wanted, static_cast<int>(std::thread::hardware_concurrency()), load);
}

int usable_cpus() {
    static const int quota = usable_cpus(INT_MAX, "");  // of files, where the affinity is a call
    return std::min(std::max(1, cpus_of_affinity()), quota);
}

}  // namespace headrace
