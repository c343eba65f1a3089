#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "ir/tensor_type.h"

/// Points between the elements of an image.
namespace headrace::ops {

inline constexpr DTypeSet kReal{DType::f32, DType::f64};

template <class F>
void visit_real(DType t, F&& f) {
    if (t == DType::f64) return f.template operator()<double>();
    f.template operator()<float>();
}

/// A point between four elements of a plane, and how much each of them counts.
struct Corners {
    std::array<std::int64_t, 4> at{};
    std::array<double, 4> weight{};

    template <class T>
    double sum(const T* plane) const {
        double total = 0;
        for (std::size_t i = 0; i < 4; ++i) total += weight[i] * static_cast<double>(plane[at[i]]);
        return total;
    }
    template <class T>
    double largest(const T* plane) const {
        double value = -std::numeric_limits<double>::infinity();
        for (std::size_t i = 0; i < 4; ++i)
            value = std::max(value, weight[i] * static_cast<double>(plane[at[i]]));
        return value;
    }
};

}  // namespace headrace::ops
