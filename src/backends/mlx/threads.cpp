#include "backends/mlx/threads.h"

#ifdef HEADRACE_MLX_OPENBLAS
extern "C" void openblas_set_num_threads(int threads);
#endif

namespace headrace::mlx {

void set_threads([[maybe_unused]] int threads) {
#ifdef HEADRACE_MLX_OPENBLAS
    openblas_set_num_threads(threads);
#endif
}

}  // namespace headrace::mlx
