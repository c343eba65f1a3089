#include <stdexcept>

#include "backends/mlx/gpu/gpu.h"

namespace headrace::mlx::gpu {

bool has_write_kernels() { return false; }

void launch_write(const mx::Stream&, const PlannedWrite&, array&, const std::vector<array>&) {
    throw std::runtime_error("a write in place was put on a GPU's stream; this library has no kernel for it");
}

std::optional<MemorySize> memory() { return std::nullopt; }

}  // namespace headrace::mlx::gpu
