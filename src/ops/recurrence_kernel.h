#pragma once
#include "kernels/tensor/recurrence.h"
#include "ops/recurrent.h"

/// What the kernels of lstm_recurrence and gru_recurrence are given.
namespace headrace::ops {

/// Which operand and which result.
struct RecurrencePlaces {
    int hidden_state, sequence;
};

/// Operand 0 has what the gates get from the input, 1 the recurrent weights, packed or not; result 0 gets the
/// last hidden state.
template <class A>
kernels::RecurrenceArgs recurrence_args(const TensorArgs& args, const A& a, bool is_packed,
                                        RecurrencePlaces places) {
    const auto shape = args.in[0].shape;
    const float* weight = args.in[1].as<float>();
    return {
        .steps = static_cast<std::size_t>(shape[0]),
        .batch = static_cast<std::size_t>(shape[1]),
        .hidden = static_cast<std::size_t>(a.hidden_size),
        .directions = static_cast<std::size_t>(directions(a.direction)),
        .backward = a.direction == Direction::backward,
        .gate_input = args.in[0].as<float>(),
        .recurrent_weight = is_packed ? nullptr : weight,
        .packed_recurrent = is_packed ? weight : nullptr,
        .hidden_state = args.has(places.hidden_state) ? args.in[places.hidden_state].as<float>() : nullptr,
        .last_hidden = args.out[0].as<float>(),
        .sequence = a.return_sequence ? args.out[places.sequence].as<float>() : nullptr};
}

}  // namespace headrace::ops
