#pragma once
#include <cstddef>

#include "ggml.h"
#include "kernels/gemm/gemm_f32.h"

namespace headrace::packed {

/// How weights of one type are packed and multiplied: a matrix is k by n, its n rows of k elements are what
/// ggml has, and its columns are those of the product.
struct Format {
    std::size_t (*bytes)(std::size_t k, std::size_t n);
    void (*pack)(const std::byte* rows, std::size_t k, std::size_t n, std::byte* packed);
    /// Thread ith's share of nth.
    void (*multiply)(const kernels::GemmArgs& args, const std::byte* packed, int ith, int nth);
};

/// The packed format for a matrix of weights: two dimensions, and a type that this CPU multiplies faster so;
/// else null.
const Format* packed_format(const ggml_tensor* tensor);

/// Bytes that a tensor takes, packed or plain.
std::size_t allocation_size(const ggml_tensor* tensor);

}  // namespace headrace::packed
