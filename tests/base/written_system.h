#pragma once
#include <filesystem>
#include <string>

#include "base/machine_memory.h"
#include "temporary_folder.h"

namespace headrace {

/// A folder with the files in which a system says how much memory there is.
class WrittenSystem {
public:
    WrittenSystem() = default;
    explicit WrittenSystem(const MachineMemory& machine) {
        put("/proc/meminfo", "MemTotal:       " + std::to_string(machine.total / 1024) +
                                 " kB\nMemFree:            12 kB\nMemAvailable:   " +
                                 std::to_string(machine.available / 1024) + " kB\nBuffers:  7 kB\n");
    }
    std::string root() const { return folder_.path().string(); }
    /// path: as the system has it, from its root on.
    void put(const std::string& path, const std::string& text) const {
        std::filesystem::create_directories(std::filesystem::path(root() + path).parent_path());
        folder_.write(path.substr(1), text);
    }

private:
    TemporaryFolder folder_;
};

}  // namespace headrace
