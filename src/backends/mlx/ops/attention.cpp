#include <cmath>

#include "backends/mlx/host/attention_loop.h"
#include "backends/mlx/ops/attention_mask.h"
#include "backends/mlx/ops/families.h"

namespace headrace::mlx {
namespace {

bool is_operand(const ggml_tensor* t) {
    return is_float(t->type) || (is_quantized(t->type) && t->nb[0] == ggml_type_size(t->type));
}

bool supports_flash_attention(const ggml_tensor* t) {
    const ggml_tensor *q = t->src[0], *k = t->src[1], *v = t->src[2], *mask = t->src[3], *sinks = t->src[4];
    return is_float(q->type) && is_operand(k) && is_operand(v) && (!mask || is_float(mask->type)) &&
           (!sinks || sinks->type == GGML_TYPE_F32) && q->ne[3] % k->ne[3] == 0 && k->ne[3] == v->ne[3];
}

/// Keys or values for as many batches and heads as the queries have.
array for_each_head(array kv, const ggml_tensor* q) {
    const int heads = static_cast<int>(q->ne[2]), batches = static_cast<int>(q->ne[3]);
    if (kv.shape(0) != batches) kv = mx::repeat(kv, batches / kv.shape(0), 0);
    return kv.shape(1) == heads ? kv : mx::repeat(kv, heads / kv.shape(1), 1);
}

/// Attention with its scores squashed to [-cap, cap], which MLX's own does not know.
array capped_attention(const array& q, const array& k, const array& v, float scale, float cap,
                       const std::optional<array>& mask, const std::optional<array>& sinks) {
    array scores = mx::matmul(q, mx::swapaxes(k, -1, -2)) * array(scale / cap);
    scores = mx::tanh(scores) * array(cap);
    if (mask) scores = scores + *mask;
    if (!sinks) return mx::matmul(mx::softmax(scores, 3, true), v);
    Shape column = scores.shape();
    column[3] = 1;
    const array first = mx::broadcast_to(mx::reshape(*sinks, {1, column[1], 1, 1}), column);
    const array all = mx::softmax(mx::concatenate({first, scores}, 3), 3, true);
    return mx::matmul(mx::slice(all, {0, 0, 0, 1}, {column[0], column[1], column[2], scores.shape(3) + 1}),
                      v);
}

/// A query that the mask hides every key from gets zeros, as on ggml's CPU; a softmax makes NaN of it.
array without_blind_queries(const array& result, const array& mask) {
    const array sees = mx::greater(mx::max(mask, 3, true), array(-INFINITY));
    return mx::where(sees, result, array(0.0f));
}

/// Below as many queries, products of matrices are not what takes the time.
constexpr std::int64_t kQueriesOfPrompt = 16;

bool suits_loop(const ggml_tensor* t) {
    return mx::default_device() == mx::Device::cpu && t->src[0]->ne[1] < kQueriesOfPrompt &&
           t->src[1]->ne[2] == t->src[2]->ne[2];
}

/// Keys or values as the loop takes them: a cache of f16 as it lies in memory.
array cached(Builder& b, const ggml_tensor* t) { return t->type == GGML_TYPE_F16 ? b.get(t) : b.f32(t); }

void translate_flash_attention(Builder& b, const ggml_tensor* t) {
    const ggml_tensor *q = t->src[0], *mask = t->src[3], *sinks = t->src[4];
    const float scale = float_param(t, 0), max_bias = float_param(t, 1), cap = float_param(t, 2);
    std::optional<array> term, sink;
    if (sinks) sink = mx::reshape(b.get(sinks), {-1});
    if (suits_loop(t)) {
        if (mask)
            term =
                max_bias > 0 ? b.f32(mask) * alibi_slopes(max_bias, static_cast<int>(q->ne[2])) : b.f32(mask);
        return b.define(t, attention_loop(b.host(), b.f32(q), cached(b, t->src[1]), cached(b, t->src[2]),
                                          term, sink, {.scale = scale, .cap = cap}));
    }
    if (mask)
        term = attention_mask(b, mask, max_bias, static_cast<int>(q->ne[1]), static_cast<int>(q->ne[2]),
                              static_cast<int>(q->ne[3]));
    array k = b.f32(t->src[1]), v = b.f32(t->src[2]);
    array result(0.0f);
    if (cap != 0) {
        result = capped_attention(b.f32(q), for_each_head(k, q), for_each_head(v, q), scale, cap, term, sink);
    } else {
        if (k.shape(0) != q->ne[3] || k.shape(1) != v.shape(1)) {
            k = for_each_head(k, q);
            v = for_each_head(v, q);
        }
        result =
            mx::fast::scaled_dot_product_attention(b.f32(q), k, v, scale, term ? "array" : "", term, sink);
    }
    if (term && !sink) result = without_blind_queries(result, *term);
    b.define(t, mx::transpose(result, {0, 2, 1, 3}));
}

/// How much each token wants each key: what its heads find in common, weighted, and the mask.
bool supports_lightning_indexer(const ggml_tensor* t) {
    return t->src[0]->type == GGML_TYPE_F32 && is_operand(t->src[1]) && t->src[2]->type == GGML_TYPE_F32 &&
           is_float(t->src[3]->type);
}
void translate_lightning_indexer(Builder& b, const ggml_tensor* t) {
    const ggml_tensor *q = t->src[0], *mask = t->src[3];
    const int heads = static_cast<int>(q->ne[1]), tokens = static_cast<int>(q->ne[2]);
    const int streams = static_cast<int>(q->ne[3]), keys = static_cast<int>(t->ne[0]);
    const array queries = mx::reshape(b.f32(q), {streams, tokens * heads, -1});
    const array k = mx::reshape(b.f32(t->src[1]), {streams, keys, -1});
    const array found = mx::maximum(mx::matmul(queries, mx::swapaxes(k, 1, 2)), array(0.0f));
    const array weights = mx::reshape(b.get(t->src[2]), {streams, tokens, 1, heads});
    const array scores = mx::matmul(weights, mx::reshape(found, {streams, tokens, heads, keys}));
    b.define(t, mx::reshape(scores, shape_of(t)) + repeat_to(b.f32(mask), mask, t));
}

constexpr OpRow kRows[] = {
    {GGML_OP_FLASH_ATTN_EXT, supports_flash_attention, translate_flash_attention},
    {GGML_OP_LIGHTNING_INDEXER, supports_lightning_indexer, translate_lightning_indexer},
};

}  // namespace

std::span<const OpRow> attention_ops() { return kRows; }

}  // namespace headrace::mlx
