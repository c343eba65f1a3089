#pragma once
#include <cstdint>
#include <vector>

#include "emit/emit.h"
#include "ops/gru.h"
#include "ops/lstm.h"

/// Recurrent networks as ggml's operations, every step's anew.
namespace headrace::ops {

/// Steps of all directions together. How many tensors a step takes at most, most_tensors() in
/// plan/placement.cpp knows.
inline constexpr std::int64_t kMostLoweredSteps = 64;

/// What one direction reads, in f32; what is absent is null.
struct LoweredDirection {
    ggml_tensor* input;                     ///< [steps, batch, gates · hidden]: weight · input + bias
    ggml_tensor* recurrent_weight;          ///< [gates · hidden, hidden]
    ggml_tensor* recurrent_bias = nullptr;  ///< [gates · hidden]
    ggml_tensor* peephole = nullptr;        ///< [3 · hidden]
    ggml_tensor* hidden = nullptr;          ///< [batch, hidden], as is `cell`
    ggml_tensor* cell = nullptr;
};

/// Operands of a sequence's op, by direction: `weight` is -1 where operand 0 has what the gates get from the
/// input.
struct SequenceOperands {
    int weight = -1, bias = -1, recurrent_weight = -1, recurrent_bias = -1, peephole = -1, hidden = -1,
        cell = -1;
    std::int64_t gates = 0;
};
std::vector<LoweredDirection> lowered_directions(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                                 const SequenceOperands& which, Direction direction,
                                                 std::int64_t hidden_size);

/// What the gates of one step get from its input [batch, inputs]; a bias may be absent.
ggml_tensor* cell_input(Emit& e, ggml_tensor* input, ggml_tensor* weight, ggml_tensor* bias);

/// Not with relu, which passes on what sums in f32 have lost, nor for few hidden values, whose steps the CPU
/// takes in less time, and closer to WebNN's tolerances.
Status recurrence_lowerable(const TensorType& input, std::int64_t steps, Direction direction,
                            std::string_view activations, std::int64_t hidden_size);
template <class Attrs>
Status recurrence_lowerable(const TensorType& input, std::int64_t steps, Direction direction,
                            const Attrs& a) {
    return recurrence_lowerable(input, steps, direction, a.activations, a.hidden_size);
}

/// The op's outputs in f32: last hidden states, of an LSTM last cells, and the sequence where it is asked
/// for.
std::vector<ggml_tensor*> lower_lstm(Emit& e, const LstmSequenceAttrs& a,
                                     std::vector<LoweredDirection> directions);
std::vector<ggml_tensor*> lower_gru(Emit& e, const GruSequenceAttrs& a,
                                    std::vector<LoweredDirection> directions);

/// The first of them as the op's outputs.
std::vector<ggml_tensor*> as_types(Emit& e, std::vector<ggml_tensor*> outputs,
                                   std::span<const TensorType> types);

}  // namespace headrace::ops
