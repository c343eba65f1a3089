#pragma once
#include <optional>

#include "backends/mlx/arrays/mlx_api.h"

namespace headrace::mlx {

struct AttentionScores {
    float scale = 1;
    float cap = 0;  ///< scores are squashed to [-cap, cap], unless it is 0
};

/// Attention of a few queries over a cache, as one loop on the CPU: MLX composes it of a dozen kernels, and
/// would convert all of an f16 cache for each token.
///
/// q: f32 [batches, heads, queries, width]; k, v: f32 or f16 [batches, key heads, keys, width], with fewer
/// heads and batches perhaps, each of which several share; mask: f32, one for all or one for each batch and
/// head; sinks: a score for each head that takes part in the sum alone. The result is [batches, queries,
/// heads, width].
array attention_loop(mx::Stream stream, const array& q, const array& k, const array& v,
                     const std::optional<array>& mask, const std::optional<array>& sinks,
                     const AttentionScores& scores);

}  // namespace headrace::mlx
