/// What ops on integers that stand for real ones share: real = (integer - zero_point) * scale.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "ir/op_def.h"
#include "kernels/int8/requantisation.h"
#include "ops/infer.h"
#include "ops/op.h"

namespace headrace::ops {

inline constexpr DTypeSet kBytes{DType::i8, DType::u8};

/// Limits of a result, for activations such as relu and clamp.
struct Int8Limits {
    std::int64_t min_value = -128, max_value = 255;
    static void fields(auto&& f) {
        f("min_value", &Int8Limits::min_value, "smallest integer of the result");
        f("max_value", &Int8Limits::max_value, "largest integer of the result");
    }
    Status check() const {
        if (min_value <= max_value) return success();
        return invalid("min_value {} is greater than max_value {}", min_value, max_value);
    }
    /// Of a result of this type.
    std::int32_t low(DType type) const {
        return static_cast<std::int32_t>(std::max<std::int64_t>(min_value, type == DType::i8 ? -128 : 0));
    }
    std::int32_t high(DType type) const {
        return static_cast<std::int32_t>(std::min<std::int64_t>(max_value, type == DType::i8 ? 127 : 255));
    }
};

/// An element of i8, u8 or i16.
inline std::int32_t int8_at(const ConstView& x, std::int64_t i) {
    switch (x.dtype) {
        case DType::i8: return x.as<std::int8_t>()[i];
        case DType::u8: return x.as<std::uint8_t>()[i];
        default: return x.as<std::int16_t>()[i];
    }
}

/// All elements less a zero point, as reference kernels sum them up: exactly.
inline std::vector<double> cleared(const ConstView& x, std::int32_t zero) {
    std::vector<double> values(static_cast<std::size_t>(x.elements()));
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = int8_at(x, static_cast<std::int64_t>(i)) - zero;
    return values;
}

/// Rounds half to even; NaN becomes the lowest. `real` is in steps of the result.
inline void store_rounded(const MutView& y, std::int64_t i, float real, std::int32_t zero, std::int32_t low,
                          std::int32_t high) {
    const double integer = std::nearbyint(static_cast<double>(real)) + zero;
    const double limited = integer > low ? std::min<double>(integer, high) : low;
    y.as<std::int8_t>()[i] = static_cast<std::int8_t>(static_cast<std::int32_t>(limited));
}

/// The operands by which sums of products become integers again, as they lie from `first` on: bias,
/// scale, input_zero_point, zero_point.
inline constexpr OperandRule kSumBias{
    .name = "bias", .dtypes = {DType::f32}, .optional = true, .min_rank = 1, .max_rank = 1};
inline constexpr OperandRule kSumScale{.name = "scale", .dtypes = {DType::f32}, .min_rank = 1, .max_rank = 1};
inline constexpr OperandRule kInputZero{
    .name = "input_zero_point", .dtypes = kBytes, .same_dtype_as = 0, .max_rank = 0};
inline constexpr OperandRule kResultZero{.name = "zero_point", .dtypes = kBytes, .max_rank = 0};

/// Stores round((sum + bias[channel]) * scale[channel]) + zero_point within limits.
class SumRounder {
public:
    SumRounder(const TensorArgs& args, const Int8Limits& limits)
        : y_(args.out[0]),
          bias_(args.has(2) ? args.in[2].as<float>() : nullptr),
          scale_(args.in[3].as<float>()),
          zero_(int8_at(args.in[5], 0)),
          low_(limits.low(y_.dtype)),
          high_(limits.high(y_.dtype)) {}

    void store(std::int64_t i, double sum, std::int64_t channel) const {
        // Sums of 32 bits wrap; a float plus a float times a float is not fused.
        const auto integer = static_cast<float>(
            static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::int64_t>(sum))));
        const float shifted = bias_ ? integer + bias_[channel] : integer;
        store_rounded(y_, i, shifted * scale_[channel], zero_, low_, high_);
    }

    static kernels::Requantisation kernel_args(const TensorArgs& args, const Int8Limits& limits) {
        const SumRounder r(args, limits);
        return {.bias = r.bias_,
                .scale = r.scale_,
                .zero = r.zero_,
                .low = r.low_,
                .high = r.high_,
                .y = r.y_.data,
                .is_signed = r.y_.dtype == DType::i8};
    }

private:
    MutView y_;
    const float *bias_, *scale_;
    std::int32_t zero_, low_, high_;
};

}  // namespace headrace::ops
