#pragma once
#include "backends/mlx/graph/builder.h"

namespace headrace::mlx {

/// ALiBi's slope of each head, of shape 1, heads, 1, 1.
array alibi_slopes(float max_bias, int heads);

/// A mask as a term for scores of `batches` x `heads` x `rows`, with ALiBi's slopes where max_bias asks for
/// them.
array attention_mask(Builder& b, const ggml_tensor* mask, float max_bias, int rows, int heads, int batches);

}  // namespace headrace::mlx
