#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "backends/mlx/arrays/mlx_api.h"
#include "backends/mlx/gpu/write_unit.h"

namespace headrace::mlx {

struct MemorySize {
    std::size_t free, total;
};

/// A write in place as a GPU does it: a thread for each unit.
struct PlannedWrite {
    WriteJob job;
    std::int64_t units;
    int element_bytes;  ///< 0: the units are groups of 32 values
};

namespace gpu {

// What needs a GPU's own toolkit to be built: one file of cuda.cu, metal.cpp and none.cpp is part of a
// library.

/// Whether this library has the kernels that write in place. Without them such writes run on the CPU's
/// stream.
bool has_write_kernels();

/// Puts a write on the GPU's stream, after what computes `inputs`: the values, row numbers where the job has
/// such, and whatever has to be finished before the memory changes. `memory` begins where its root does.
void launch_write(const mx::Stream& stream, const PlannedWrite& write, array& memory,
                  const std::vector<array>& inputs);

/// As the GPU's driver says; nothing where it cannot be asked.
std::optional<MemorySize> memory();

}  // namespace gpu
}  // namespace headrace::mlx
