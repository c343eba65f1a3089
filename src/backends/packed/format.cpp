#include "backends/packed/format.h"

#include <algorithm>
#include <cstdint>

#include "kernels/gemm/bf16_gemm_f32.h"
#include "kernels/gemm/block_gemm_int8.h"
#include "kernels/gemm/f16_gemm_f32.h"

namespace headrace::packed {
namespace {

template <BlockFormat kFormat>
const Format* blocks() {
    static constexpr Format format{
        .bytes = [](std::size_t k, std::size_t n) { return kernels::packed_blocks_bytes(kFormat, k, n); },
        .pack = [](const std::byte* rows, std::size_t k, std::size_t n,
                   std::byte* packed) { kernels::pack_blocks(kFormat, rows, k, n, packed); },
        .multiply = [](const kernels::GemmArgs& args, const std::byte* packed, int ith,
                       int nth) { kernels::block_gemm_int8(args, kFormat, packed, ith, nth); }};
    return kernels::has_block_gemm_int8(kFormat) ? &format : nullptr;
}

/// By kernels::pack_half_floats or kernels::pack_bf16.
template <auto Pack>
void pack_16_bits(const std::byte* rows, std::size_t k, std::size_t n, std::byte* packed) {
    Pack(reinterpret_cast<const std::uint16_t*>(rows), 1, static_cast<std::ptrdiff_t>(k), k, n,
         reinterpret_cast<std::uint16_t*>(packed));
}

/// Widened to f32 in registers.
template <bool kIsBf16>
const Format* half_floats() {
    static constexpr Format format{
        .bytes = kernels::packed_half_float_bytes,
        .pack = pack_16_bits<kernels::pack_half_floats>,
        .multiply = [](const kernels::GemmArgs& args, const std::byte* packed, int ith, int nth) {
            kernels::f16_gemm_f32(args, reinterpret_cast<const std::uint16_t*>(packed), kIsBf16, ith, nth);
        }};
    return &format;
}

/// By the processor's own products, for which rows are rounded to bf16, as ggml does on every processor.
const Format* bf16_pairs() {
    static constexpr Format format{
        .bytes = kernels::packed_bf16_bytes,
        .pack = pack_16_bits<kernels::pack_bf16>,
        .multiply = [](const kernels::GemmArgs& args, const std::byte* packed, int ith, int nth) {
            kernels::bf16_gemm_f32(args, reinterpret_cast<const std::uint16_t*>(packed), ith, nth);
        }};
    return &format;
}

}  // namespace

const Format* packed_format(const ggml_tensor* tensor) {
    if (tensor->ne[2] != 1 || tensor->ne[3] != 1 || tensor->ne[1] < 2 || !ggml_is_contiguous(tensor))
        return nullptr;
    switch (tensor->type) {
        case GGML_TYPE_Q8_0: return blocks<BlockFormat::q8_0>();
        case GGML_TYPE_Q4_0: return blocks<BlockFormat::q4_0>();
        case GGML_TYPE_Q4_1: return blocks<BlockFormat::q4_1>();
        case GGML_TYPE_Q4_K: return blocks<BlockFormat::q4_k>();
        case GGML_TYPE_F16: return half_floats<false>();
        case GGML_TYPE_BF16: return kernels::has_bf16_gemm() ? bf16_pairs() : half_floats<true>();
        default: return nullptr;
    }
}

std::size_t allocation_size(const ggml_tensor* tensor) {
    const Format* format = packed_format(tensor);
    if (!format) return ggml_nbytes(tensor);
    return std::max(ggml_nbytes(tensor), format->bytes(static_cast<std::size_t>(tensor->ne[0]),
                                                       static_cast<std::size_t>(tensor->ne[1])));
}

}  // namespace headrace::packed
