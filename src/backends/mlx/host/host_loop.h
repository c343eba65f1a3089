#pragma once
#include <cstdint>
#include <vector>

#include "backends/mlx/arrays/mlx_api.h"

namespace headrace::mlx {

/// Values in row order, with the four axes that the backend's arrays have: f32, or i32 where an op has whole
/// numbers.
struct HostValues {
    const float* data;
    Shape shape;

    const std::int32_t* integers() const { return reinterpret_cast<const std::int32_t*>(data); }
    std::size_t rows() const {
        std::size_t rows = 1;
        for (std::size_t axis = 0; axis + 1 < shape.size(); ++axis)
            rows *= static_cast<std::size_t>(shape[axis]);
        return rows;
    }
    int columns() const { return shape.back(); }
};

/// A loop over values into f32 memory of its own; `parameter` is whatever number the op has.
using HostFunction = void (*)(const std::vector<HostValues>& inputs, double parameter, float* out);

/// The result of `function` as one node of an expression, for what would take MLX a node or more for each
/// token. `stream` is the CPU's; where MLX computes on a GPU, MLX itself orders the two.
array host_loop(mx::Stream stream, HostFunction function, double parameter, Shape shape,
                const std::vector<array>& inputs);

}  // namespace headrace::mlx
