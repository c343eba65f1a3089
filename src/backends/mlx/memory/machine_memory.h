#pragma once
#include <string>

#include "backends/mlx/gpu/gpu.h"

namespace headrace::mlx {

/// The memory of the device that MLX computes on: the machine's memory, or a GPU's own.
MemorySize device_memory();
/// The machine's, or what the process's control groups leave of it. root: as of headrace::machine_memory.
MemorySize host_memory(const std::string& root = "");

}  // namespace headrace::mlx
