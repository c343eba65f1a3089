/// How real numbers become integers: quantize_linear, and the ops and passes that do as it does.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "headrace/dtype.h"

namespace headrace::ops {

/// What a type of integers holds, of 32 bits at most.
struct IntegerRange {
    double low, high;
};
constexpr IntegerRange integer_range(DType t) {
    switch (t) {
        case DType::i4: return {-8, 7};
        case DType::u4: return {0, 15};
        case DType::i8: return {-128, 127};
        case DType::u8: return {0, 255};
        case DType::i16: return {-32768, 32767};
        default: return {-2147483648.0, 2147483647.0};
    }
}

/// Rounds half to even. NaN becomes the lowest value, as x86's minimum and maximum make it, hence ONNX
/// Runtime.
inline std::int64_t quantize(float quotient, std::int64_t zero_point, const IntegerRange& range) {
    const double integer = std::nearbyint(static_cast<double>(quotient)) + static_cast<double>(zero_point);
    return static_cast<std::int64_t>(integer > range.low ? std::min(integer, range.high) : range.low);
}

}  // namespace headrace::ops
