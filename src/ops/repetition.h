#pragma once
#include <cstdint>
#include <vector>

#include "emit/emit.h"
#include "ops/strided.h"

/// How tensors repeat in others.
namespace headrace::ops {

/// Every dimension of a tensor with how often it is repeated; dimensions that repeat together are merged.
struct Repetition {
    std::vector<std::int64_t> sizes, times;

    void add(std::int64_t size, std::int64_t count) {
        // What is kept inside a dimension repeats with it; an extent of 1 repeats whatever is inside.
        if (!sizes.empty() && (count == 1 || sizes.back() == 1)) {
            sizes.back() *= size;
            times.back() *= count;
        } else {
            sizes.push_back(size);
            times.push_back(count);
        }
    }
    std::vector<std::int64_t> extents() const {
        std::vector<std::int64_t> result;
        for (std::size_t i = 0; i < sizes.size(); ++i) result.push_back(sizes[i] * times[i]);
        return result;
    }
};

/// From shapes that align at the end, where each output extent is a multiple of the input's.
inline Repetition repetition(Sizes from, Sizes to) {
    Repetition r;
    const std::size_t shift = to.size() - from.size();
    for (std::size_t i = 0; i < to.size(); ++i) {
        const std::int64_t size = i < shift ? 1 : from[i - shift];
        r.add(size, size == 0 ? 1 : to[i] / size);
    }
    return r;
}

/// A contiguous f32 or f16 tensor repeated as ggml does on every device, which has four dimensions: more are
/// repeated one by one, from the last. The result has the elements of `to` in any extents.
inline ggml_tensor* repeat_to(Emit& e, ggml_tensor* x, Sizes from, Sizes to) {
    const Repetition r = repetition(from, to);
    const std::vector<std::int64_t> extents = r.extents();
    if (extents == r.sizes) return x;
    if (extents.size() <= 4) return e.repeat(e.reshape(x, r.sizes), extents);
    std::int64_t inner = 1;
    for (std::size_t i = extents.size(); i-- > 0; inner *= extents[i]) {
        std::int64_t outer = 1;
        for (std::size_t k = 0; k < i; ++k) outer *= r.sizes[k];
        const std::array<std::int64_t, 3> before{outer, r.sizes[i], inner}, after{outer, extents[i], inner};
        if (r.times[i] != 1) x = e.repeat(e.reshape(x, before), after);
    }
    return x;
}

}  // namespace headrace::ops
