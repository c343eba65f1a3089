#pragma once
// The parts of MLX that the backend uses, under the short name mx.
#include <mlx/mlx.h>

namespace headrace::mlx {

namespace mx = ::mlx::core;
using mx::array;
using mx::Shape;
using mx::Strides;

}  // namespace headrace::mlx
