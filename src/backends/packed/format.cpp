#include "backends/packed/format.h"

#include <algorithm>

#include "kernels/block_gemm_int8.h"

namespace headrace::packed {

std::optional<BlockFormat> packed_format(const ggml_tensor* tensor) {
    if (tensor->ne[2] != 1 || tensor->ne[3] != 1 || tensor->ne[1] < 2 || !ggml_is_contiguous(tensor))
        return std::nullopt;
    std::optional<BlockFormat> format;
    switch (tensor->type) {
        case GGML_TYPE_Q8_0: format = BlockFormat::q8_0; break;
        case GGML_TYPE_Q4_0: format = BlockFormat::q4_0; break;
        case GGML_TYPE_Q4_1: format = BlockFormat::q4_1; break;
        case GGML_TYPE_Q4_K: format = BlockFormat::q4_k; break;
        default: return std::nullopt;
    }
    return kernels::has_block_gemm_int8(*format) ? format : std::nullopt;
}

std::size_t allocation_size(const ggml_tensor* tensor) {
    const auto format = packed_format(tensor);
    if (!format) return ggml_nbytes(tensor);
    return std::max(ggml_nbytes(tensor),
                    kernels::packed_blocks_bytes(*format, static_cast<std::size_t>(tensor->ne[0]),
                                                 static_cast<std::size_t>(tensor->ne[1])));
}

}  // namespace headrace::packed
