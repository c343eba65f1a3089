#pragma once
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "ir/tensor_type.h"

/// Arithmetic that is defined for every value: integers wrap, conversions saturate.
namespace headrace::ops {

/// Unsigned and not narrower than int, because narrower operands would be promoted to signed int and
/// overflow.
template <std::integral T>
using wrap_t = std::common_type_t<std::make_unsigned_t<T>, unsigned>;

template <class T>
T wrapping_add(T a, T b) {
    if constexpr (std::integral<T>)
        return static_cast<T>(wrap_t<T>(a) + wrap_t<T>(b));
    else
        return a + b;
}
template <class T>
T wrapping_sub(T a, T b) {
    if constexpr (std::integral<T>)
        return static_cast<T>(wrap_t<T>(a) - wrap_t<T>(b));
    else
        return a - b;
}
template <class T>
T wrapping_mul(T a, T b) {
    if constexpr (std::integral<T>)
        return static_cast<T>(wrap_t<T>(a) * wrap_t<T>(b));
    else
        return a * b;
}

/// The nearest value of an integer type after truncation towards zero; NaN becomes 0.
template <std::integral To, class From>
To saturate(From x) {
    using Limits = std::numeric_limits<To>;
    if constexpr (std::integral<From>) {
        if (std::cmp_less(x, Limits::min())) return Limits::min();
        return std::cmp_greater(x, Limits::max()) ? Limits::max() : static_cast<To>(x);
    } else {
        if (std::isnan(x)) return 0;
        // The smallest value is a power of two or 0, hence exact in From; the largest may round up to one
        // past it.
        if (x <= static_cast<From>(Limits::min())) return Limits::min();
        return x >= static_cast<From>(Limits::max()) ? Limits::max() : static_cast<To>(x);
    }
}

/// Double to float such that a second rounding, to f16 or bf16, gives what one rounding would:
/// inexact values are truncated and get an odd last bit.
inline float round_to_odd(double x) {
    const float nearest = static_cast<float>(x);
    if (static_cast<double>(nearest) == x || std::isnan(x)) return nearest;
    const bool away = std::abs(static_cast<double>(nearest)) > std::abs(x);
    const std::uint32_t truncated = std::bit_cast<std::uint32_t>(nearest) - (away ? 1u : 0u);
    return std::bit_cast<float>(truncated | 1u);
}

/// An element of one storage type as another: floats to integers truncate and saturate, integers to integers
/// wrap, floats to floats round once.
template <class To, class From>
To convert(From x) {
    if constexpr (!std::is_arithmetic_v<From>)
        return convert<To>(static_cast<float>(x));
    else if constexpr (std::integral<To> && std::floating_point<From>)
        return saturate<To>(x);
    else if constexpr (!std::is_arithmetic_v<To> && !std::same_as<From, float>)
        return To(round_to_odd(static_cast<double>(x)));
    else
        return static_cast<To>(x);
}

/// The i-th element of a packed 4-bit tensor.
inline int load_nibble(const ConstView& x, std::int64_t i) {
    const int bits = std::to_integer<int>(x.data[i / 2]) >> (i % 2 * 4) & 15;
    return x.dtype == DType::i4 && bits > 7 ? bits - 16 : bits;
}

/// What reductions accumulate an element type in.
template <class T>
using accumulator_t = std::conditional_t<std::integral<T>, T, double>;

}  // namespace headrace::ops
