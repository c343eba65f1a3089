// Long short-term memory over what its gates get from an f32 sequence, with the activations sigmoid, tanh
// and tanh and without peepholes.
#pragma once

#include <cstddef>

namespace headrace::kernels {

// Dense row-major operands. The rows of the weights are four gates of `hidden` rows each, the input gate
// first; `output`, `forget` and `candidate` say which of the others is which.
struct LstmArgs {
    size_t steps = 0, batch = 0, hidden = 0, directions = 1;
    bool backward = false;  // the first direction runs from the end; a second one always does
    size_t output = 1, forget = 2, candidate = 3;
    const float* gate_input = nullptr;        // [steps, batch, directions, 4 hidden], with the biases
    const float* recurrent_weight = nullptr;  // [directions, 4 hidden, hidden]; not read where it is packed
    const float* packed_recurrent = nullptr;  // from pack_recurrent(), or null: each call packs its own
    const float* hidden_state = nullptr;      // [directions, batch, hidden], or null for zeros
    const float* cell_state = nullptr;        // the same
    float* last_hidden = nullptr;             // [directions, batch, hidden]
    float* last_cell = nullptr;               // the same
    float* sequence = nullptr;  // [steps, directions, batch, hidden] by the input's step, or null
};

// Bytes that pack_recurrent() writes.
size_t packed_recurrent_bytes(size_t directions, size_t hidden);

// Packs [directions, 4 hidden, hidden], one direction after the other as pack() does. Aligned to
// kPackedAlignment.
void pack_recurrent(const float* weight, size_t directions, size_t hidden, float* packed);

// Computes thread ith's share of nth: rows of the batch, which do not depend on each other. Throws
// std::bad_alloc where there is no memory for the gates.
void lstm_f32(const LstmArgs& args, int ith, int nth);

}  // namespace headrace::kernels
