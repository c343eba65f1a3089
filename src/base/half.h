#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace headrace {

/// IEEE binary16 to binary32: exact.
inline float half_to_float(std::uint16_t h) {
    const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000u) << 16;
    const std::uint32_t exponent = (h >> 10) & 0x1Fu;
    const std::uint32_t mantissa = h & 0x3FFu;
    if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24
        const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
        return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
    }
    if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000u | (mantissa << 13));
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

/// binary32 to binary16, rounding to nearest, ties to even; NaN stays NaN.
inline std::uint16_t float_to_half(float f) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(f);
    const std::uint16_t sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
    const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u) return static_cast<std::uint16_t>(sign | 0x7E00u);
    if (magnitude >= 0x477FF000u) return static_cast<std::uint16_t>(sign | 0x7C00u);  // rounds past 65504
    if (magnitude < 0x38800000u) {  // subnormal half: let float addition round at 2^-24
        const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
        return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000u));
    }
    const std::uint32_t odd = (magnitude >> 13) & 1u;
    return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u + 0xFFFu + odd) >> 13));
}

inline float bfloat_to_float(std::uint16_t b) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(b) << 16);
}

inline std::uint16_t float_to_bfloat(float f) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(f);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
    return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

/// A binary16 among bytes, at any address.
inline float load_half(const std::byte* from) {
    std::uint16_t bits;
    std::memcpy(&bits, from, sizeof(bits));
    return half_to_float(bits);
}

inline void store_half(float value, std::byte* to) {
    const std::uint16_t bits = float_to_half(value);
    std::memcpy(to, &bits, sizeof(bits));
}

/// Storage of one f16 element; computes as float and rounds once on the way back.
struct Half {
    std::uint16_t bits = 0;
    Half() = default;
    explicit Half(float f) : bits(float_to_half(f)) {}
    explicit operator float() const { return half_to_float(bits); }
};

/// Storage of one bf16 element.
struct BFloat16 {
    std::uint16_t bits = 0;
    BFloat16() = default;
    explicit BFloat16(float f) : bits(float_to_bfloat(f)) {}
    explicit operator float() const { return bfloat_to_float(bits); }
};

}  // namespace headrace
