#pragma once
#include <cstddef>

namespace headrace::mlx {

struct MemorySize {
    std::size_t free, total;
};

/// Of the device that MLX computes on: the machine's memory, or a GPU's own.
MemorySize device_memory();

}  // namespace headrace::mlx
