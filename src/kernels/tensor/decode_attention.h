// Attention of a few f32 queries over long caches of keys and values, as language models decode.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace::kernels {

// For each head: O[token] = softmax(cap(scale * Q·Kᵀ) + mask) · V, with Q[token][width], K[key][width],
// V[key][width_v]. Query head h reads head h / (heads / kv_heads) of K and V. Rows are contiguous; strides
// are in elements. All sums are in f32. Element is that of the cache and its mask: uint16_t for f16, or
// float.
template <class Element>
struct DecodeAttentionArgs {
    size_t tokens = 0, heads = 1, kv_heads = 1, keys = 0, width = 0, width_v = 0;
    const float* q = nullptr;
    ptrdiff_t q_token = 0, q_head = 0;
    const Element* k = nullptr;
    ptrdiff_t k_row = 0, k_head = 0;
    const Element* v = nullptr;
    ptrdiff_t v_row = 0, v_head = 0;
    // Or null: added; keys at -infinity are not read where a block has no other.
    const Element* mask = nullptr;
    ptrdiff_t mask_token = 0;
    const float* sinks = nullptr;  // or null: a score for each head that takes weight and gives nothing
    float* o = nullptr;            // a token all of whose keys are masked is 0
    ptrdiff_t o_token = 0, o_head = 0;
    float scale = 1;
    float softcap = 0;  // c * tanh(score / c); 0: none
};

// Whether the widths suit this CPU's vectors, and it converts f16 where that is asked for.
template <class Element>
bool has_cached_attention(size_t width, size_t width_v);
template <>
bool has_cached_attention<uint16_t>(size_t width, size_t width_v);
template <>
bool has_cached_attention<float>(size_t width, size_t width_v);

// Runs thread ith's share of nth.
void decode_attention(const DecodeAttentionArgs<uint16_t>& args, int ith, int nth);
void decode_attention(const DecodeAttentionArgs<float>& args, int ith, int nth);

}  // namespace headrace::kernels
