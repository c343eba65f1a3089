#pragma once
#include <numeric>

namespace headrace::mlx {

/// Several sums side by side, so that a compiler that keeps the order of additions has vectors to add.
inline float dot(const float* a, const float* b, int count) {
    constexpr int kSums = 16;
    float sums[kSums] = {};
    int i = 0;
    for (; i + kSums <= count; i += kSums)
        for (int k = 0; k < kSums; ++k) sums[k] += a[i + k] * b[i + k];
    for (; i < count; ++i) sums[0] += a[i] * b[i];
    return std::accumulate(sums, sums + kSums, 0.0f);
}

}  // namespace headrace::mlx
