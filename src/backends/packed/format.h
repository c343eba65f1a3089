#pragma once
#include <cstddef>
#include <optional>

#include "ggml.h"
#include "ir/block_format.h"

namespace headrace::packed {

/// The format of a matrix of weights that is kept packed: two dimensions, and a format that this CPU
/// multiplies in 8-bit integers.
std::optional<BlockFormat> packed_format(const ggml_tensor* tensor);

/// Bytes that a tensor takes: packed, as blocks, or plain.
std::size_t allocation_size(const ggml_tensor* tensor);

}  // namespace headrace::packed
