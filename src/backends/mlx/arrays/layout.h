#pragma once
#include "backends/mlx/arrays/mlx_api.h"

namespace headrace::mlx {

/// The array with its elements one after the other. As mx::contiguous, but without a primitive where what
/// computes the array is known to leave it so.
array in_row_order(const array& x);

}  // namespace headrace::mlx
