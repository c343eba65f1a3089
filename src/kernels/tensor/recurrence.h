// What the kernels of recurrent networks over a sequence share: their operands, and the walk through the
// steps.
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/run_stop.h"

namespace headrace::kernels {

// Dense row-major operands; each gate has `hidden` rows of the weights.
struct RecurrenceArgs {
    size_t steps = 0, batch = 0, hidden = 0, directions = 1;
    bool backward = false;              // the first direction runs from the end; a second one always does
    const float* gate_input = nullptr;  // [steps, batch, directions, gates hidden], with the biases
    const float* recurrent_weight =
        nullptr;  // [directions, gates hidden, hidden]; not read where it is packed
    const float* packed_recurrent =
        nullptr;                          // of the network's pack function, or null: each call packs its own
    const float* hidden_state = nullptr;  // [directions, batch, hidden], or null for zeros
    float* last_hidden = nullptr;         // [directions, batch, hidden]
    float* sequence = nullptr;            // [steps, directions, batch, hidden] by the input's step, or null
};

// Packs the recurrent weights of several directions, one after the other, to kPackedAlignment.
using PackRecurrent = void (*)(const float* weight, size_t directions, size_t hidden, float* packed);

// Rows [row, row + rows) of the batch in one direction.
struct RecurrentRows {
    RecurrentRows(const RecurrenceArgs& args, size_t of_direction, size_t first, size_t count)
        : g(args), direction(of_direction), row(first), rows(count), hidden(start(args.hidden_state)) {}

    // From [directions, batch, hidden], or zeros.
    std::vector<float> start(const float* state) const {
        std::vector<float> values(rows * g.hidden);
        if (state) std::copy_n(state + slot() * g.hidden, values.size(), values.begin());
        return values;
    }
    // Into [directions, batch, hidden].
    void store(const std::vector<float>& values, float* all) const {
        std::copy(values.begin(), values.end(), all + slot() * g.hidden);
    }
    size_t slot() const { return direction * g.batch + row; }

    // What the gates of the first row get from step t of the input. From row to row it is a stride away.
    const float* input(size_t t, size_t gates) const {
        return g.gate_input + ((t * g.batch + row) * g.directions + direction) * gates * g.hidden;
    }
    size_t input_stride(size_t gates) const { return g.directions * gates * g.hidden; }

    // This direction's weights, packed here unless the caller has them. Throws std::bad_alloc.
    const float* packed(PackRecurrent pack, size_t gates, size_t bytes) {
        if (g.packed_recurrent) return g.packed_recurrent + direction * (bytes / sizeof(float));
        auto made = AlignedBuffer::allocate(bytes, "recurrent weights");
        if (!made.ok()) throw std::bad_alloc();
        packed_here = std::move(made).value();
        float* here = reinterpret_cast<float*>(packed_here.data());
        pack(g.recurrent_weight + direction * gates * g.hidden * g.hidden, 1, g.hidden, here);
        return here;
    }

    const RecurrenceArgs& g;
    const size_t direction, row, rows;
    std::vector<float> hidden;  // [rows, hidden]
    AlignedBuffer packed_here;
};

// Computes thread ith's share of nth: rows of the batch, which do not depend on each other. Network is made
// of the arguments, a direction, and the first and number of its rows; step(t) advances its RecurrentRows
// `state`.
template <class Network, class Args>
void walk_rows(const Args& g, int ith, int nth) {
    const size_t slots = g.directions * g.batch, end = slots * (ith + 1) / nth;
    for (size_t slot = slots * ith / nth; slot < end;) {
        const size_t direction = slot / g.batch, row = slot % g.batch;
        const size_t rows = std::min(g.batch - row, end - slot);
        Network network(g, direction, row, rows);
        const bool backward = direction == 1 || g.backward;
        for (size_t i = 0; i < g.steps; ++i) {
            check_stop();
            const size_t t = backward ? g.steps - 1 - i : i;
            network.step(t);
            if (g.sequence) network.state.store(network.state.hidden, g.sequence + t * slots * g.hidden);
        }
        network.finish();
        slot += rows;
    }
}

}  // namespace headrace::kernels
