#pragma once
#include <cuda.h>

namespace headrace::mlx::gpu {

/// The kernel for units of so many bytes, or for groups (0), as the driver knows it: libmlx has a CUDA
/// runtime of its own, which does not know the kernels of this library. Its parameters: the memory, the
/// values, the row numbers or null, the WriteJob, and the number of units in 64 bits, each a thread's.
CUfunction write_kernel(int element_bytes);

}  // namespace headrace::mlx::gpu
