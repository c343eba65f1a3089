#include "base/machine_memory.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <string_view>
#include <vector>

#include "base/control_groups.h"

namespace headrace {
namespace {

/// The number behind a word at the start of a line; 0 without such a line.
std::uint64_t number_after(const std::string& path, std::string_view word) {
    std::ifstream file(path);
    std::string key, line;
    while (file >> key) {
        std::uint64_t number = 0;
        if (key == word && file >> number) return number;
        file.clear();
        std::getline(file, line);
    }
    return 0;
}

/// Where a version of control groups has what.
struct Layout {
    const char *limit, *usage;
    const char* reclaimable;  ///< of memory.stat: pages of files, which can be had back
};

constexpr Layout kSecond{"memory.max", "memory.current", "inactive_file"};
constexpr Layout kFirst{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};

/// Bytes that a group may have in all and can still get, where it has a limit.
std::optional<MachineMemory> memory_of(const ControlGroup& group) {
    const Layout& layout = group.version == 2 ? kSecond : kFirst;
    const auto limit = number_in(group.folder + "/" + layout.limit);
    const auto usage = number_in(group.folder + "/" + layout.usage);
    if (limit.value_or(0) == 0 || !usage) return std::nullopt;
    const std::uint64_t files = number_after(group.folder + "/memory.stat", layout.reclaimable);
    const std::uint64_t used = *usage - std::min(*usage, files);
    return MachineMemory{*limit, *limit - std::min(*limit, used)};
}

/// Kernels before 3.14 do not say what could be had, only what is free.
std::uint64_t available_kib(const std::string& info) {
    const std::uint64_t available = number_after(info, "MemAvailable:");
    return available > 0 ? available : number_after(info, "MemFree:");
}

/// The machine's memory, if it is known, and that of each group with a limit.
std::vector<MachineMemory> all_memories(const std::string& root) {
    const std::string info = root + "/proc/meminfo";
    std::vector<MachineMemory> all;
    if (const std::uint64_t kib = number_after(info, "MemTotal:"); kib > 0)
        all.push_back({kib * 1024, available_kib(info) * 1024});
    for (const ControlGroup& group : control_groups("memory", root))
        if (const auto limited = memory_of(group)) all.push_back(*limited);
    return all;
}

}  // namespace

MachineMemory machine_memory(const std::string& root) {
    const std::vector<MachineMemory> all = all_memories(root);
    if (all.empty()) return {};
    MachineMemory least = all.front();
    for (const MachineMemory& memory : all) {
        least.total = std::min(least.total, memory.total);
        least.available = std::min(least.available, memory.available);
    }
    return least;
}

double memory_share_in_use(const std::string& root) {
    double share = 0;
    for (const MachineMemory& memory : all_memories(root))
        share =
            std::max(share, 1.0 - static_cast<double>(memory.available) / static_cast<double>(memory.total));
    return share;
}

std::uint64_t available_memory(const std::string& root) {
    const MachineMemory memory = machine_memory(root);
    return memory.total > 0 ? memory.available : UINT64_MAX;
}

}  // namespace headrace
