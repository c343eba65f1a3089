#pragma once
#include <cmath>
#include <cstdint>

#include "ops/through_f32.h"

/// What the normalisations share.
namespace headrace::ops {

/// ggml's norm asserts that epsilon is not negative.
inline Status normalizes_through_f32(DType t, double epsilon) {
    if (!(epsilon >= 0)) return unsupported("epsilon {}", epsilon);
    return works_through_f32(t);
}

/// Element i of an optional operand.
template <class T>
double read_or(const TensorArgs& args, int operand, std::int64_t i, double absent) {
    return args.has(operand) ? convert<double>(args.in[operand].as<T>()[i]) : absent;
}

/// y = scale (x - mean) / sqrt(variance + epsilon) + bias with the mean and variance of `count` elements of
/// x. at(i) says where element i lies, scale_bias(i) gives its two factors.
template <class T, class At, class ScaleBias>
void normalize(const T* x, T* y, std::int64_t count, double epsilon, At&& at, ScaleBias&& scale_bias) {
    double mean = 0, variance = 0;
    for (std::int64_t i = 0; i < count; ++i) mean += convert<double>(x[at(i)]);
    mean /= static_cast<double>(count);
    for (std::int64_t i = 0; i < count; ++i) {
        const double d = convert<double>(x[at(i)]) - mean;
        variance += d * d;
    }
    const double factor = 1 / std::sqrt(variance / static_cast<double>(count) + epsilon);
    for (std::int64_t i = 0; i < count; ++i) {
        const auto [scale, bias] = scale_bias(i);
        y[at(i)] = convert<T>((convert<double>(x[at(i)]) - mean) * factor * scale + bias);
    }
}

}  // namespace headrace::ops
