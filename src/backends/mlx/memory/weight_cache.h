#pragma once
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "backends/mlx/arrays/mlx_api.h"

struct ggml_tensor;

namespace headrace::mlx {

/// f32 copies of a buffer's weights, for the types that MLX has no fast or no exact product for.
///
/// All caches of the process share one limit. What does not fit is converted in every run instead: throwing
/// out older entries would convert the whole model again for each token.
class WeightCache {
public:
    ~WeightCache();

    /// Whether the tensor's copy is there or would fit.
    bool admits(const ggml_tensor* t);
    /// The copy, made if it is not there; of shape_of(t).
    array get(const ggml_tensor* t);
    /// Forgets the copies of all that lies in [begin, begin + bytes).
    void drop(const void* begin, std::size_t bytes);

    /// GGML_MLX_WEIGHT_CACHE_MB, or by default an eighth of the machine's memory.
    static std::size_t limit();
    static void set_limit(std::size_t bytes);
    static std::size_t bytes_in_use();

private:
    /// A matrix, and views that begin where it does, are different weights.
    struct Key {
        const void* data = nullptr;
        std::array<std::int64_t, 4> extents{};
        std::array<std::size_t, 4> strides{};
        auto operator<=>(const Key&) const = default;
    };
    static Key key_of(const ggml_tensor* t);

    std::mutex mutex_;
    std::map<Key, array> entries_;
};

/// The tensor's values as f32, row-contiguous: from repacked, quantised or 16-bit memory.
array convert_to_f32(const ggml_tensor* t);

}  // namespace headrace::mlx
