#pragma once
#include <cstddef>

#include "backends/mlx/arrays/mlx_api.h"
#include "backends/mlx/memory/weight_cache.h"

struct ggml_tensor;

namespace headrace::mlx {

/// One allocation of ggml's, had from MLX: arrays share it, so that neither side copies. On a GPU it is
/// memory that the host can address, too (Metal's shared, CUDA's managed), which it does between graphs
/// alone.
///
/// Tensors of a QuantFormat lie in it repacked (quant_format.h); all others as ggml lays them out.
class Buffer {
public:
    static constexpr std::size_t kAlignment = 64;

    /// Throws what MLX throws when there is no memory.
    explicit Buffer(std::size_t size);

    char* base() const { return base_; }
    std::size_t size() const { return size_; }
    WeightCache& weights() { return weights_; }

    /// An array over memory of this buffer, evaluated and without a copy. `data` is aligned for the dtype.
    array alias(const void* data, Shape shape, Strides strides, mx::Dtype dtype) const;

private:
    array owner_;
    char* base_;
    std::size_t size_;
    WeightCache weights_;
};

/// The buffer that holds the tensor, or null for memory that is not of this backend.
Buffer* buffer_of(const ggml_tensor* t);

/// An evaluated row-contiguous array with uninitialised memory.
array allocate(Shape shape, mx::Dtype dtype);

}  // namespace headrace::mlx
