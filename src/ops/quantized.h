/// What ops on integers that stand for real ones share: real = (integer - zero_point) * scale.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "ir/op_def.h"
#include "kernels/int8/requantization.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/quantize.h"

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
    /// The range of a result of this type.
    IntegerRange of(DType type) const {
        const IntegerRange all = integer_range(type);
        return {std::max(static_cast<double>(min_value), all.low),
                std::min(static_cast<double>(max_value), all.high)};
    }
};

/// The bytes as the kernels read them.
inline kernels::Bytes bytes_of(const ConstView& x) { return {x.data, x.dtype == DType::i8}; }

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

/// `real` is in steps of the result.
inline void store_rounded(const MutView& y, std::int64_t i, float real, std::int32_t zero,
                          const IntegerRange& limits) {
    y.as<std::int8_t>()[i] = static_cast<std::int8_t>(quantize(real, zero, limits));
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
          limits_(limits.of(y_.dtype)) {}

    void store(std::int64_t i, double sum, std::int64_t channel) const {
        // Sums of 32 bits wrap; a float plus a float times a float is not fused.
        const auto integer = static_cast<float>(
            static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::int64_t>(sum))));
        const float shifted = bias_ ? integer + bias_[channel] : integer;
        store_rounded(y_, i, shifted * scale_[channel], zero_, limits_);
    }

    static kernels::Requantization kernel_args(const TensorArgs& args, const Int8Limits& limits) {
        const SumRounder r(args, limits);
        return {.bias = r.bias_,
                .scale = r.scale_,
                .zero = r.zero_,
                .low = static_cast<std::int32_t>(r.limits_.low),
                .high = static_cast<std::int32_t>(r.limits_.high),
                .y = r.y_.data,
                .is_signed = r.y_.dtype == DType::i8};
    }

private:
    MutView y_;
    const float *bias_, *scale_;
    std::int32_t zero_;
    IntegerRange limits_;
};

/// Calls f.operator()<T>() with the type of the weights of a product, i8 or i16.
template <class F>
void visit_weights(const ConstView& weights, F&& f) {
    weights.dtype == DType::i8 ? f.template operator()<std::int8_t>() : f.template operator()<std::int16_t>();
}

/// A sample of an op whose operands are input, constant weights and those above, for so many channels.
inline Sample product_sample(TensorType input, TensorType weights, DType result, std::int64_t channels,
                             NamedAttrs attrs, bool has_bias) {
    const double low = integer_range(input.dtype).low, most = weights.dtype == DType::i8 ? 127 : 255;
    const DType type = input.dtype;
    return {
        {{.type = std::move(input), .low = low, .high = low + 255},
         {.type = std::move(weights), .low = -most, .high = most, .constant = true},
         {.type = {DType::f32, {channels}}, .low = -900, .high = 900, .constant = true, .absent = !has_bias},
         {.type = {DType::f32, {channels}}, .low = 0.0005, .high = 0.004, .constant = true},
         {.type = {type, {}}, .low = low, .high = low + 255, .constant = true},
         {.type = {result, {}}, .low = 0, .high = 9, .constant = true}},
        std::move(attrs),
        0};
}

}  // namespace headrace::ops
