// Scaled dot-product attention of f32 tensors, without the matrix of all scores in memory.
#pragma once

#include <cstddef>

namespace headrace::kernels {

// For each of `heads` heads of each of `batch` sequences: O[m][width_v] = softmax(scale * Q·Kᵀ + mask) · V
// with Q[m][width], K[n][width], V[n][width_v]; rows are contiguous, strides are in floats. Query head h
// reads head h / (heads / kv_heads) of K and V.
struct AttentionArgs {
    size_t batch = 1, heads = 1, kv_heads = 1;
    size_t m = 0, n = 0, width = 0, width_v = 0;
    struct Matrix {
        const float* data = nullptr;
        ptrdiff_t batch = 0, head = 0, row = 0;
    };
    Matrix q, k, v;
    float* o = nullptr;
    ptrdiff_t o_batch = 0, o_head = 0, o_row = 0;
    // Or null: added to the scaled scores; strides of 0 broadcast. Keys at the end that -infinity hides from
    // all queries are not read.
    const float* mask = nullptr;
    ptrdiff_t mask_batch = 0, mask_head = 0, mask_row = 0, mask_column = 0;
    bool causal = false;         // query i sees keys 0 to i
    bool zero_if_masked = true;  // a row all of whose keys are masked is 0; else NaN (without keys always 0)
    float scale = 1;
    // Where has_bf16_gemm(): from three queries on, what is multiplied is rounded to bf16, as bf16_gemm_f32()
    // does.
    bool round_to_bf16 = false;
};

// Runs thread ith's share of nth, split over heads and blocks of queries. Allocates a block of scores, and
// throws std::bad_alloc where there is no memory for it.
void attention_f32(const AttentionArgs& args, int ith, int nth);

}  // namespace headrace::kernels
