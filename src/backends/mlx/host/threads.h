#pragma once
#include <cstddef>
#include <functional>

namespace headrace::mlx {

/// Threads of the matrix products on the CPU, OpenBLAS's and those of in_parts(); at first all that the
/// machine has. MLX's own code uses one.
void set_threads(int threads);

/// Calls `body` with the begin and the end of parts of [0, count), cut at multiples of `grain`, from several
/// threads, and returns when all are done. The caller does what the others do not come to: they may be busy,
/// or with another caller's parts. `body` does not throw.
void in_parts(std::size_t count, std::size_t grain,
              const std::function<void(std::size_t, std::size_t)>& body);

}  // namespace headrace::mlx
