#pragma once
#include <cstddef>
#include <fstream>
#include <string>

namespace headrace::kernels::testing {

/// Lets the system count the most memory that this process has from now on; false where it cannot.
inline bool reset_peak_memory() {
    std::ofstream file("/proc/self/clear_refs");
    file << "5" << std::flush;
    return file.good();
}

/// KiB that this process has had at most since then.
inline std::size_t peak_memory_kib() {
    std::ifstream file("/proc/self/status");
    for (std::string word; file >> word;)
        if (std::size_t kib = 0; word == "VmHWM:" && file >> kib) return kib;
    return 0;
}

}  // namespace headrace::kernels::testing
