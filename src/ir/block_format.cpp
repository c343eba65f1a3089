#include "ir/block_format.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "ir/block_group.h"

namespace headrace {
namespace {

constexpr int kHalfBlock = kBlockElements / 2;

void store_float(float value, std::byte* to) { std::memcpy(to, &value, sizeof(value)); }

/// Stores the scale and gives what follows it.
std::byte* store_scale(float scale, bool is_f32, std::byte* to) {
    is_f32 ? store_float(scale, to) : store_half(scale, to);
    return to + (is_f32 ? sizeof(float) : sizeof(std::uint16_t));
}

/// Stores codes of 8 bits around zero and gives their scale.
float quantize_bytes(const float* x, int count, std::byte* codes) {
    float most = 0;
    for (int i = 0; i < count; ++i) most = std::max(most, std::abs(x[i]));
    const float scale = most / 127, inverse = scale ? 1 / scale : 0;
    for (int i = 0; i < count; ++i)
        codes[i] = static_cast<std::byte>(static_cast<std::int8_t>(std::round(x[i] * inverse)));
    return scale;
}

void quantize_q8_0(const float* x, bool is_f32, std::byte* to) {
    std::byte* codes = to + (is_f32 ? sizeof(float) : sizeof(std::uint16_t));
    store_scale(quantize_bytes(x, kBlockElements, codes), is_f32, to);
}

/// The element of the largest magnitude becomes -8, the one code without a positive counterpart.
void quantize_q4_0(const float* x, bool is_f32, std::byte* to) {
    float extreme = 0;
    for (int i = 0; i < kBlockElements; ++i)
        if (std::abs(x[i]) > std::abs(extreme)) extreme = x[i];
    const float scale = extreme / -8, inverse = scale ? 1 / scale : 0;
    to = store_scale(scale, is_f32, to);
    const auto code = [&](float v) {
        return std::byte(std::min(15, static_cast<int>(static_cast<std::int8_t>(v * inverse + 8.5f))));
    };
    for (int i = 0; i < kHalfBlock; ++i) to[i] = code(x[i]) | code(x[i + kHalfBlock]) << 4;
}

/// From the least to the largest in 15 steps.
void quantize_q4_1_f32(const float* x, std::byte* to) {
    const auto [least, most] = std::minmax_element(x, x + kBlockElements);
    const float low = *least, scale = (*most - low) / 15, inverse = scale ? 1 / scale : 0;
    store_float(scale, to);
    store_float(low, to + sizeof(float));
    const auto code = [&](float v) { return std::byte(static_cast<int>((v - low) * inverse + 0.5f)); };
    for (int i = 0; i < kHalfBlock; ++i) to[8 + i] = code(x[i]) | code(x[i + kHalfBlock]) << 4;
}

/// Two blocks of 16, each around zero.
void quantize_q8_16_f32(const float* x, std::byte* to) {
    for (int half = 0; half < 2; ++half)
        store_float(quantize_bytes(x + half * kHalfBlock, kHalfBlock, to + 8 + half * kHalfBlock),
                    to + half * 4);
}

/// Two blocks of 16, each from its least to its largest or zero in 15 steps.
void quantize_q4_16_f32(const float* x, std::byte* to) {
    std::fill_n(to + 8, 1 + kHalfBlock, std::byte{0});
    for (int half = 0; half < 2; ++half, x += kHalfBlock) {
        const auto [least, most] = std::minmax_element(x, x + kHalfBlock);
        const float low = std::min(*least, 0.0f), scale = (std::max(*most, 0.0f) - low) / 15,
                    inverse = scale ? 1 / scale : 0, zero = std::round(-low * inverse);
        store_float(scale, to + half * 4);
        to[8] |= static_cast<std::byte>(static_cast<int>(zero) << 4 * half);
        for (int i = 0; i < kHalfBlock; ++i) {
            const float code = std::clamp(std::round(x[i] * inverse) + zero, 0.0f, 15.0f);
            to[9 + i] |= static_cast<std::byte>(static_cast<int>(code) << 4 * half);
        }
    }
}

}  // namespace

std::string_view name_of(BlockFormat format) {
    static constexpr std::string_view kNames[] = {"plain",    "q8_0",     "q4_0",      "q4_1",     "q5_0",
                                                  "q5_1",     "q4_k",     "q5_k",      "q6_k",     "q8_0_f32",
                                                  "q4_0_f32", "q4_1_f32", "q8_16_f32", "q4_16_f32"};
    return kNames[static_cast<std::size_t>(format)];
}

void quantize(BlockFormat format, const float* from, std::int64_t elements, std::byte* to) {
    for (std::int64_t i = 0; i < elements; i += kBlockElements, to += block_bytes(format)) {
        const bool is_f32 = !is_of_ggml(format);
        if (format == BlockFormat::q8_0 || format == BlockFormat::q8_0_f32)
            quantize_q8_0(from + i, is_f32, to);
        if (format == BlockFormat::q4_0 || format == BlockFormat::q4_0_f32)
            quantize_q4_0(from + i, is_f32, to);
        if (format == BlockFormat::q4_1_f32) quantize_q4_1_f32(from + i, to);
        if (format == BlockFormat::q8_16_f32) quantize_q8_16_f32(from + i, to);
        if (format == BlockFormat::q4_16_f32) quantize_q4_16_f32(from + i, to);
    }
}

void dequantize(BlockFormat format, const std::byte* from, std::int64_t elements, float* to) {
    BlockGroup group;
    for (std::int64_t g = 0; g < elements / kBlockElements; ++g, to += kBlockElements) {
        unpack_group(format, from, g, group);
        for (int i = 0; i < kBlockElements; ++i)
            to[i] = group.scale[i / 16] * static_cast<float>(group.codes[i]) + group.low;
    }
}

}  // namespace headrace
