#include "backends/mlx/memory/quant_format.h"

#include <array>
#include <cstring>

#include "backends/mlx/arrays/stream.h"

namespace headrace::mlx {
namespace {

constexpr std::array kFormats{
    QuantFormat{GGML_TYPE_Q4_0, 4, 32, "affine", 32, 0, 8},
    QuantFormat{GGML_TYPE_Q4_1, 4, 32, "affine", 32, 0, 0},
    QuantFormat{GGML_TYPE_Q5_0, 5, 32, "affine", 32, 0, 16},
    QuantFormat{GGML_TYPE_Q5_1, 5, 32, "affine", 32, 0, 0},
    QuantFormat{GGML_TYPE_Q8_0, 8, 32, "affine", 32, 0, 128},
    QuantFormat{GGML_TYPE_Q4_K, 4, 32, "affine", 256, 16, 0},
    QuantFormat{GGML_TYPE_Q5_K, 5, 32, "affine", 256, 16, 0},
    QuantFormat{GGML_TYPE_MXFP4, 4, 32, "mxfp4", 32, 0, 0},
    QuantFormat{GGML_TYPE_NVFP4, 4, 16, "nvfp4", 64, 0, 0},
};

using Codes = std::uint8_t[256];

float read_half(const std::uint8_t* bytes) {
    ggml_fp16_t half;
    std::memcpy(&half, bytes, sizeof half);
    return ggml_fp16_to_fp32(half);
}

void write_half(float value, std::uint8_t* bytes) {
    const ggml_fp16_t half = ggml_fp32_to_fp16(value);
    std::memcpy(bytes, &half, sizeof half);
}

/// ggml keeps value i and value i + half of a group in one byte.
void split_nibbles(const std::uint8_t* bytes, int half, std::uint8_t* codes) {
    for (int i = 0; i < half; ++i) {
        codes[i] = bytes[i] & 15;
        codes[i + half] = bytes[i] >> 4;
    }
}
void join_nibbles(const std::uint8_t* codes, int half, std::uint8_t* bytes) {
    for (int i = 0; i < half; ++i)
        bytes[i] = static_cast<std::uint8_t>((codes[i] & 15) | (codes[i + half] << 4));
}

/// MLX's order: codes one after the other from the lowest bit on; eight 5-bit codes fill five bytes.
void write_codes(const std::uint8_t* codes, int count, int bits, std::uint8_t* out) {
    if (bits == 8) {
        std::memcpy(out, codes, count);
    } else if (bits == 4) {
        for (int i = 0; i < count / 2; ++i)
            out[i] = static_cast<std::uint8_t>(codes[2 * i] | (codes[2 * i + 1] << 4));
    } else {
        for (int i = 0; i < count; i += 8, out += 5) {
            std::uint64_t word = 0;
            for (int k = 0; k < 8; ++k) word |= static_cast<std::uint64_t>(codes[i + k]) << (5 * k);
            std::memcpy(out, &word, 5);
        }
    }
}
void read_codes(const std::uint8_t* in, int count, int bits, std::uint8_t* codes) {
    if (bits == 8) {
        std::memcpy(codes, in, count);
    } else if (bits == 4) {
        for (int i = 0; i < count / 2; ++i) {
            codes[2 * i] = in[i] & 15;
            codes[2 * i + 1] = in[i] >> 4;
        }
    } else {
        for (int i = 0; i < count; i += 8, in += 5) {
            std::uint64_t word = 0;
            std::memcpy(&word, in, 5);
            for (int k = 0; k < 8; ++k) codes[i + k] = (word >> (5 * k)) & 31;
        }
    }
}

/// The eight 6-bit scales and minima of a K-quant's block.
void read_k_scales(const std::uint8_t* packed, int group, int& scale, int& minimum) {
    if (group < 4) {
        scale = packed[group] & 63;
        minimum = packed[group + 4] & 63;
    } else {
        scale = (packed[group + 4] & 15) | ((packed[group - 4] >> 6) << 4);
        minimum = (packed[group + 4] >> 4) | ((packed[group] >> 6) << 4);
    }
}

// One block of ggml's, taken apart. `scales` and `biases` have an entry for each group.
void read_simple_block(ggml_type type, const std::uint8_t* block, std::uint8_t* codes, float* scale,
                       float* bias) {
    const bool has_minimum = type == GGML_TYPE_Q4_1 || type == GGML_TYPE_Q5_1;
    const std::uint8_t* rest = block + (has_minimum ? 4 : 2);
    *scale = read_half(block);
    if (type == GGML_TYPE_Q8_0) {
        for (int i = 0; i < 32; ++i) codes[i] = static_cast<std::uint8_t>(rest[i] + 128);
        *bias = -128 * *scale;
        return;
    }
    const bool five = type == GGML_TYPE_Q5_0 || type == GGML_TYPE_Q5_1;
    split_nibbles(rest + (five ? 4 : 0), 16, codes);
    if (five) {
        std::uint32_t high;
        std::memcpy(&high, rest, 4);
        for (int i = 0; i < 32; ++i) codes[i] |= ((high >> i) & 1) << 4;
    }
    *bias = has_minimum ? read_half(block + 2) : (five ? -16 : -8) * *scale;
}
void write_simple_block(ggml_type type, const std::uint8_t* codes, float scale, float bias,
                        std::uint8_t* block) {
    const bool has_minimum = type == GGML_TYPE_Q4_1 || type == GGML_TYPE_Q5_1;
    std::uint8_t* rest = block + (has_minimum ? 4 : 2);
    write_half(scale, block);
    if (has_minimum) write_half(bias, block + 2);
    if (type == GGML_TYPE_Q8_0) {
        for (int i = 0; i < 32; ++i) rest[i] = static_cast<std::uint8_t>(codes[i] - 128);
        return;
    }
    const bool five = type == GGML_TYPE_Q5_0 || type == GGML_TYPE_Q5_1;
    join_nibbles(codes, 16, rest + (five ? 4 : 0));
    if (five) {
        std::uint32_t high = 0;
        for (int i = 0; i < 32; ++i) high |= static_cast<std::uint32_t>(codes[i] >> 4) << i;
        std::memcpy(rest, &high, 4);
    }
}

void read_k_block(ggml_type type, const std::uint8_t* block, std::uint8_t* codes, float* scales,
                  float* biases) {
    const bool five = type == GGML_TYPE_Q5_K;
    const float d = read_half(block), minimum = read_half(block + 2);
    const std::uint8_t* high = block + 16;
    const std::uint8_t* low = block + (five ? 48 : 16);
    for (int g = 0; g < 8; ++g) {
        int scale, offset;
        read_k_scales(block + 4, g, scale, offset);
        scales[g] = d * static_cast<float>(scale);
        biases[g] = -(minimum * static_cast<float>(offset));
        for (int i = 0; i < 32; ++i) {
            const std::uint8_t byte = low[g / 2 * 32 + i];
            codes[32 * g + i] = g % 2 ? byte >> 4 : byte & 15;
            if (five) codes[32 * g + i] |= ((high[i] >> g) & 1) << 4;
        }
    }
}
void write_k_block(ggml_type type, const std::uint8_t* codes, std::uint8_t* block) {
    const bool five = type == GGML_TYPE_Q5_K;
    std::uint8_t* high = block + 16;
    std::uint8_t* low = block + (five ? 48 : 16);
    if (five) std::memset(high, 0, 32);
    for (int g = 0; g < 8; ++g)
        for (int i = 0; i < 32; ++i) {
            const std::uint8_t code = codes[32 * g + i];
            std::uint8_t& byte = low[g / 2 * 32 + i];
            byte = g % 2 ? static_cast<std::uint8_t>((byte & 15) | ((code & 15) << 4)) : code & 15;
            if (five) high[i] |= (code >> 4) << g;
        }
}

// NVFP4's scale 0x7f is 0 to ggml and NaN to MLX, whose -0 no block of ggml's uses.
constexpr std::uint8_t kGgmlZero = 0x7f, kMlxZero = 0x80;

void read_fp4_block(const QuantFormat& format, const std::uint8_t* block, std::uint8_t* codes,
                    std::uint8_t* scales) {
    const int groups = format.block / format.group;
    for (int g = 0; g < groups; ++g) {
        scales[g] = format.group == 16 && block[g] == kGgmlZero ? kMlxZero : block[g];
        split_nibbles(block + groups + g * format.group / 2, format.group / 2, codes + g * format.group);
    }
}
void write_fp4_block(const QuantFormat& format, const std::uint8_t* codes, const std::uint8_t* scales,
                     std::uint8_t* block) {
    const int groups = format.block / format.group;
    for (int g = 0; g < groups; ++g) {
        block[g] = format.group == 16 && scales[g] == kMlxZero ? kGgmlZero : scales[g];
        join_nibbles(codes + g * format.group, format.group / 2, block + groups + g * format.group / 2);
    }
}

/// The parts of one block in a repacked tensor.
template <class Byte>
struct BlockParts {
    Byte *codes, *scales, *biases, *header;

    BlockParts(const QuantFormat& format, Byte* tensor, std::int64_t values, std::int64_t block) {
        const PackedLayout layout = packed_layout(format, values);
        const std::size_t first_scale = format.scales(block * format.block) * format.scale_bytes();
        codes = tensor + format.code_bytes(block * format.block);
        scales = tensor + layout.scales + first_scale;
        biases = tensor + layout.biases + first_scale;
        header = tensor + layout.headers + block * format.header;
    }
};

}  // namespace

bool QuantFormat::has_biases() const {
    return is_affine() && (offset == 0 || mlx_device() != mx::Device::cpu);
}

const QuantFormat* quant_format(ggml_type type) {
    for (const QuantFormat& format : kFormats)
        if (format.type == type) return &format;
    return nullptr;
}

PackedLayout packed_layout(const QuantFormat& format, std::int64_t values) {
    const auto align = [](std::size_t bytes) { return (bytes + 63) / 64 * 64; };
    const std::size_t scales = format.scales(values) * format.scale_bytes();
    PackedLayout layout{};
    layout.scales = align(format.code_bytes(values));
    layout.biases = layout.scales + align(scales);
    layout.headers = layout.biases + (format.has_biases() ? align(scales) : 0);
    layout.end = layout.headers + align(static_cast<std::size_t>(values / format.block) * format.header);
    return layout;
}

void pack_blocks(const QuantFormat& format, const void* blocks, std::int64_t first, std::int64_t count,
                 void* tensor, std::int64_t values) {
    const std::size_t size = ggml_type_size(format.type);
    const auto* in = static_cast<const std::uint8_t*>(blocks);
    for (std::int64_t b = first; b < first + count; ++b, in += size) {
        const BlockParts parts(format, static_cast<std::uint8_t*>(tensor), values, b);
        Codes codes;
        if (!format.is_affine()) {
            read_fp4_block(format, in, codes, parts.scales);
        } else if (format.header) {
            read_k_block(format.type, in, codes, reinterpret_cast<float*>(parts.scales),
                         reinterpret_cast<float*>(parts.biases));
            std::memcpy(parts.header, in, format.header);
        } else {
            float derived;
            read_simple_block(format.type, in, codes, reinterpret_cast<float*>(parts.scales),
                              format.has_biases() ? reinterpret_cast<float*>(parts.biases) : &derived);
        }
        write_codes(codes, format.block, format.bits, parts.codes);
    }
}

void unpack_blocks(const QuantFormat& format, const void* tensor, std::int64_t values, std::int64_t first,
                   std::int64_t count, void* blocks) {
    const std::size_t size = ggml_type_size(format.type);
    auto* out = static_cast<std::uint8_t*>(blocks);
    for (std::int64_t b = first; b < first + count; ++b, out += size) {
        const BlockParts parts(format, static_cast<const std::uint8_t*>(tensor), values, b);
        Codes codes;
        read_codes(parts.codes, format.block, format.bits, codes);
        if (!format.is_affine()) {
            write_fp4_block(format, codes, parts.scales, out);
        } else if (format.header) {
            std::memcpy(out, parts.header, format.header);
            write_k_block(format.type, codes, out);
        } else {
            const float bias = format.has_biases() ? *reinterpret_cast<const float*>(parts.biases) : 0;
            write_simple_block(format.type, codes, *reinterpret_cast<const float*>(parts.scales), bias, out);
        }
    }
}

void dequantize_blocks(const QuantFormat& format, const void* tensor, std::int64_t values, std::int64_t first,
                       std::int64_t count, float* out) {
    if (!format.is_affine()) {
        const std::size_t size = ggml_type_size(format.type);
        std::uint8_t block[64];
        GGML_ASSERT(size <= sizeof block);
        for (std::int64_t b = first; b < first + count; ++b, out += format.block) {
            unpack_blocks(format, tensor, values, b, 1, block);
            ggml_get_type_traits(format.type)->to_float(block, out, format.block);
        }
        return;
    }
    const BlockParts parts(format, static_cast<const std::uint8_t*>(tensor), values, first);
    const auto* scales = reinterpret_cast<const float*>(parts.scales);
    const auto* biases = format.has_biases() ? reinterpret_cast<const float*>(parts.biases) : nullptr;
    const std::uint8_t* packed = parts.codes;
    const std::int64_t groups = count * format.block / format.group;
    for (std::int64_t g = 0; g < groups; ++g, out += 32, packed += 4 * format.bits) {
        std::uint8_t codes[32];
        read_codes(packed, 32, format.bits, codes);
        const float bias = biases ? biases[g] : static_cast<float>(-format.offset) * scales[g];
        for (int i = 0; i < 32; ++i) out[i] = static_cast<float>(codes[i]) * scales[g] + bias;
    }
}

}  // namespace headrace::mlx
