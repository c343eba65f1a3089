#include "llm/machine_memory.h"

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

namespace headrace::llm {
namespace {

/// A file with one number; 0 when there is none ("max").
double number_in(const char* path) {
    std::ifstream file(path);
    double number = 0;
    return file >> number ? number : 0;
}

double group_share() {
    const double limit = number_in("/sys/fs/cgroup/memory.max"),
                 used = number_in("/sys/fs/cgroup/memory.current");
    if (limit <= 0) return 0;
    double reclaimable = 0;
    std::ifstream statistics("/sys/fs/cgroup/memory.stat");
    std::string key;
    double value = 0;
    while (statistics >> key >> value)
        if (key == "inactive_file") reclaimable = value;
    return std::max(0.0, used - reclaimable) / limit;
}

}  // namespace

double memory_share_in_use() {
    std::ifstream info("/proc/meminfo");
    std::string line;
    uint64_t total = 0, available = 0;
    while (std::getline(info, line)) {
        std::sscanf(line.c_str(), "MemTotal: %" SCNu64, &total);
        std::sscanf(line.c_str(), "MemAvailable: %" SCNu64, &available);
    }
    const double machine = total ? 1.0 - static_cast<double>(available) / static_cast<double>(total) : 0;
    return std::max(machine, group_share());
}

}  // namespace headrace::llm
