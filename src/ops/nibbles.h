#pragma once
#include <vector>

#include "ir/op_def.h"

namespace headrace::ops {

inline std::vector<std::byte> unpack_nibbles(const std::byte* packed, std::int64_t count) {
    std::vector<std::byte> elements(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < elements.size(); ++i)
        elements[i] = (packed[i / 2] >> (i % 2 * 4)) & std::byte{15};
    return elements;
}

inline void pack_nibbles(std::span<const std::byte> elements, std::byte* packed) {
    for (std::size_t i = 0; i < elements.size(); i += 2) {
        const std::byte high = i + 1 < elements.size() ? elements[i + 1] : std::byte{0};
        packed[i / 2] = (elements[i] & std::byte{15}) | high << 4;
    }
}

/// Runs a kernel that moves whole elements without looking into them. Packed 4-bit tensors come to it as one
/// byte per element (dtype u8), and on one thread, because two threads must not share an output byte.
template <class Kernel>
void move_elements(const TensorArgs& args, Kernel&& kernel) {
    if (bits_of(args.out[0].dtype) != 4) return kernel(args);
    if (!args.share.first()) return;
    std::vector<ConstView> in(args.in.begin(), args.in.end());
    std::vector<MutView> out(args.out.begin(), args.out.end());
    std::vector<std::vector<std::byte>> unpacked(in.size() + out.size());
    for (std::size_t i = 0; i < in.size(); ++i) {
        if (!in[i] || bits_of(in[i].dtype) != 4) continue;
        unpacked[i] = unpack_nibbles(in[i].data, in[i].elements());
        unpacked[i].reserve(1);  // data() must not be null: that means an absent operand
        in[i] = {DType::u8, in[i].shape, unpacked[i].data()};
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
        auto& elements = unpacked[in.size() + i];
        elements.resize(static_cast<std::size_t>(out[i].elements()));
        out[i] = {DType::u8, out[i].shape, elements.data()};
    }
    kernel(TensorArgs{in, out, Share{}});
    for (std::size_t i = 0; i < out.size(); ++i) pack_nibbles(unpacked[in.size() + i], args.out[i].data);
}

/// Bytes of one element as move_elements' kernels see it.
inline std::size_t element_bytes(DType t) { return static_cast<std::size_t>(bits_of(t)) / 8; }

}  // namespace headrace::ops
