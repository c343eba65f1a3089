#include "backends/mlx/machine_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "backends/mlx/gpu/gpu.h"
#include "backends/mlx/mlx_api.h"

namespace headrace::mlx {
namespace {

std::size_t physical_bytes() {
    return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
           static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

/// What the kernel could give without swapping; all of it where it does not say.
std::size_t available_bytes() {
    std::ifstream file("/proc/meminfo");
    std::string key;
    for (std::size_t kilobytes; file >> key >> kilobytes; file.ignore(64, '\n'))
        if (key == "MemAvailable:") return kilobytes * 1024;
    return physical_bytes();
}

}  // namespace

MemorySize device_memory() {
    if (mx::is_available(mx::Device::gpu)) {
        if (const auto size = gpu::memory()) return *size;
        const std::size_t total = mx::get_memory_limit();
        return {total - std::min(total, mx::get_active_memory()), total};
    }
    return {available_bytes(), physical_bytes()};
}

}  // namespace headrace::mlx
