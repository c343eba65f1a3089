#include "backends/mlx/memory/machine_memory.h"

#include <unistd.h>

#include <algorithm>

#include "backends/mlx/arrays/mlx_api.h"
#include "base/machine_memory.h"

namespace headrace::mlx {
namespace {

std::size_t physical_bytes() {
    return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
           static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

MemorySize host_memory(const std::string& root) {
    const MachineMemory memory = machine_memory(root);
    if (memory.total > 0)
        return {static_cast<std::size_t>(memory.available), static_cast<std::size_t>(memory.total)};
    return {physical_bytes(), physical_bytes()};  // the system does not say more
}

MemorySize device_memory() {
    if (mx::is_available(mx::Device::gpu)) {
        if (const auto size = gpu::memory()) return *size;
        const std::size_t total = mx::get_memory_limit();
        return {total - std::min(total, mx::get_active_memory()), total};
    }
    return host_memory();
}

}  // namespace headrace::mlx
