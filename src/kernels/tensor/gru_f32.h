// Gated recurrent units over what their gates get from an f32 sequence, with the activations sigmoid and
// tanh.
#pragma once

#include "kernels/tensor/recurrence.h"

namespace headrace::kernels {

// Three gates: update and reset in either order, then the new state.
struct GruArgs : RecurrenceArgs {
    size_t update = 0, reset = 1;
    bool reset_after = true;  // the reset gate scales the new state's product with the weights, not the state
    const float* recurrent_bias = nullptr;  // [directions, 3 hidden], or null for zeros
};

// Bytes that pack_gru_recurrent() writes.
size_t packed_gru_recurrent_bytes(size_t directions, size_t hidden);

// Packs [directions, 3 hidden, hidden] as pack() does, of each direction the gates update and reset, then the
// new state's. Aligned to kPackedAlignment.
void pack_gru_recurrent(const float* weight, size_t directions, size_t hidden, float* packed);

// Computes thread ith's share of nth: rows of the batch, which do not depend on each other. Throws
// std::bad_alloc where there is no memory for the gates.
void gru_f32(const GruArgs& args, int ith, int nth);

}  // namespace headrace::kernels
