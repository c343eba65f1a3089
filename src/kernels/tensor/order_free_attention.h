// Attention over caches whose results depend on what a query sees alone: not on where its keys lie in the
// cache and in which order, nor on the other queries, nor on how many threads compute.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/tensor/decode_attention.h"

namespace headrace::kernels {

// Whether this CPU has it for such widths of keys and values.
bool has_order_free_attention(size_t width, size_t width_v);

// Runs thread ith's share of nth of what decode_attention() computes. Weights are rounded to 24 bits behind
// the point, with which sums of weighted values are exact in 64-bit floats, and so the same in any order.
void order_free_attention(const DecodeAttentionArgs<uint16_t>& args, int ith, int nth);

}  // namespace headrace::kernels
