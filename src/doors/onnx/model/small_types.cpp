#include "doors/onnx/model/small_types.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "ir/constant.h"

namespace headrace::onnx {

std::uint32_t bits_at(const std::byte* bytes, std::int64_t i, std::int64_t bits) {
    if (bits == 16) {
        std::uint16_t value = 0;
        std::memcpy(&value, bytes + 2 * i, 2);
        return value;
    }
    const std::int64_t each = 8 / bits;
    const auto byte = std::to_integer<std::uint32_t>(bytes[i / each]);
    return (byte >> (bits * (i % each))) & ((1U << bits) - 1);
}

namespace {

template <class T, class Read>
Result<std::shared_ptr<const Constant>> each_element(std::int64_t count, Read read) {
    HR_ASSIGN(auto buffer,
              AlignedBuffer::allocate(static_cast<std::size_t>(count) * sizeof(T), "a tensor's elements"));
    auto* out = reinterpret_cast<T*>(buffer.data());
    for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(read(i));
    return own_constant(std::move(buffer));
}

/// How a small float's bits are divided, and which of them are no numbers.
struct FloatForm {
    int mantissa, bias;
    bool has_infinity = false;  ///< as IEEE 754: the largest exponent is infinity or NaN
    bool zero_is_nan = false;   ///< "-0" is the one NaN
    int nan = -1;               ///< the magnitude that is NaN; -1: none
};

FloatForm form_of(ElementType type) {
    switch (type) {
        case ElementType::f8e4m3fn: return {.mantissa = 3, .bias = 7, .nan = 0x7f};
        case ElementType::f8e4m3fnuz: return {.mantissa = 3, .bias = 8, .zero_is_nan = true};
        case ElementType::f8e5m2: return {.mantissa = 2, .bias = 15, .has_infinity = true};
        case ElementType::f8e5m2fnuz: return {.mantissa = 2, .bias = 16, .zero_is_nan = true};
        default: return {.mantissa = 1, .bias = 1};  // f4e2m1
    }
}

}  // namespace

float small_float(ElementType type, std::uint32_t bits) {
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    if (type == ElementType::f8e8m0)  // a power of 2
        return bits == 0xff ? kNan : std::ldexp(1.0F, static_cast<int>(bits) - 127);
    const FloatForm form = form_of(type);
    const std::uint32_t sign = 1U << (bits_of(type) - 1), magnitude = bits & (sign - 1);
    if (form.zero_is_nan && bits == sign) return kNan;
    if (form.nan >= 0 && magnitude == static_cast<std::uint32_t>(form.nan)) return kNan;
    const auto exponent = static_cast<int>(magnitude >> form.mantissa);
    const auto fraction = static_cast<float>(magnitude & ((1U << form.mantissa) - 1));
    const float scale = std::ldexp(1.0F, -form.mantissa);
    float value = 0;
    if (form.has_infinity && exponent == 31)
        value = fraction == 0 ? std::numeric_limits<float>::infinity() : kNan;
    else if (exponent == 0)
        value = std::ldexp(fraction * scale, 1 - form.bias);
    else
        value = std::ldexp(1 + fraction * scale, exponent - form.bias);
    return (bits & sign) != 0 ? -value : value;
}

Result<std::shared_ptr<const Constant>> carried_elements(ElementType type, std::span<const std::byte> bytes,
                                                         std::int64_t count) {
    const int bits = bits_of(type);
    switch (type) {
        case ElementType::u16:
            return each_element<std::uint32_t>(
                count, [&](std::int64_t i) { return bits_at(bytes.data(), i, bits); });
        case ElementType::u2:
            return each_element<std::uint8_t>(count,
                                              [&](std::int64_t i) { return bits_at(bytes.data(), i, bits); });
        case ElementType::i2:  // the sign is the upper of both bits
            return each_element<std::int8_t>(count, [&](std::int64_t i) {
                const auto value = static_cast<int>(bits_at(bytes.data(), i, bits));
                return value >= 2 ? value - 4 : value;
            });
        default:
            return each_element<float>(
                count, [&](std::int64_t i) { return small_float(type, bits_at(bytes.data(), i, bits)); });
    }
}

}  // namespace headrace::onnx
