// Long short-term memory over what its gates get from an f32 sequence, with the activations sigmoid, tanh
// and tanh and without peepholes.
#pragma once

#include <cstdint>

#include "kernels/tensor/recurrence.h"

namespace headrace::kernels {

// The input gate is the first of four; `output`, `forget` and `candidate` say which of the others is which.
struct LstmArgs : RecurrenceArgs {
    size_t output = 1, forget = 2, candidate = 3;
    const float* cell_state = nullptr;  // [directions, batch, hidden], or null for zeros
    float* last_cell = nullptr;         // the same
    // Where has_bf16_gemm(): packed_recurrent comes from pack_lstm_bf16(), and hidden states are rounded
    // alike.
    bool round_to_bf16 = false;
};

// Bytes that pack_lstm_recurrent() writes.
size_t packed_lstm_recurrent_bytes(size_t directions, size_t hidden);

// Packs [directions, 4 hidden, hidden], one direction after the other as pack() does. Aligned to
// kPackedAlignment.
void pack_lstm_recurrent(const float* weight, size_t directions, size_t hidden, float* packed);

// The same rounded to bf16.
size_t packed_lstm_bf16_bytes(size_t directions, size_t hidden);
void pack_lstm_bf16(const float* weight, size_t directions, size_t hidden, uint16_t* packed);

// Computes thread ith's share of nth: rows of the batch, which do not depend on each other. Throws
// std::bad_alloc where there is no memory for the gates.
void lstm_f32(const LstmArgs& args, int ith, int nth);

}  // namespace headrace::kernels
