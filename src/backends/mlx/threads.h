#pragma once

namespace headrace::mlx {

/// Threads of the matrix products on the CPU, where OpenBLAS computes them; MLX's own code uses one.
void set_threads(int threads);

}  // namespace headrace::mlx
