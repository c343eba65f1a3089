#include "base/machine_memory.h"

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

namespace headrace {
namespace {

/// A file with one number; 0 when there is none ("max").
double number_in(const char* path) {
    std::ifstream file(path);
    double number = 0;
    return file >> number ? number : 0;
}

struct Group {
    double limit = 0, used = 0;  ///< bytes; no limit is 0
};

/// The control group's memory without files' pages, which can be had back.
Group group_memory() {
    const double limit = number_in("/sys/fs/cgroup/memory.max"),
                 used = number_in("/sys/fs/cgroup/memory.current");
    if (limit <= 0) return {};
    double reclaimable = 0;
    std::ifstream statistics("/sys/fs/cgroup/memory.stat");
    std::string key;
    double value = 0;
    while (statistics >> key >> value)
        if (key == "inactive_file") reclaimable = value;
    return {limit, std::max(0.0, used - reclaimable)};
}

struct Machine {
    uint64_t total = 0, available = 0;  ///< KiB
};

Machine machine_memory() {
    std::ifstream info("/proc/meminfo");
    std::string line;
    Machine machine;
    while (std::getline(info, line)) {
        std::sscanf(line.c_str(), "MemTotal: %" SCNu64, &machine.total);
        std::sscanf(line.c_str(), "MemAvailable: %" SCNu64, &machine.available);
    }
    return machine;
}

}  // namespace

double memory_share_in_use() {
    const auto [total, available] = machine_memory();
    const double machine = total ? 1.0 - static_cast<double>(available) / static_cast<double>(total) : 0;
    const Group group = group_memory();
    return std::max(machine, group.limit > 0 ? group.used / group.limit : 0);
}

uint64_t available_memory() {
    const Machine machine = machine_memory();
    const uint64_t free = machine.total ? machine.available * 1024 : UINT64_MAX;
    const Group group = group_memory();
    if (group.limit <= 0) return free;
    return std::min(free, static_cast<uint64_t>(std::max(0.0, group.limit - group.used)));
}

}  // namespace headrace
