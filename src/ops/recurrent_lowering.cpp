#include "ops/recurrent_lowering.h"

#include <array>
#include <utility>

#include "ops/composed.h"
#include "ops/through_f32.h"

namespace headrace::ops {
namespace {

using Tensor = ggml_tensor*;

Tensor activated(Emit& e, GateFunction f, Tensor x) {
    switch (f) {
        case GateFunction::sigmoid: return e.unary(Unary::sigmoid, x);
        case GateFunction::tanh: return composed::tanh(e, x);
        default: return x;  // relu has no lowering
    }
}

Tensor add(Emit& e, Tensor a, Tensor b) { return e.binary(Binary::add, a, b); }
Tensor mul(Emit& e, Tensor a, Tensor b) { return e.binary(Binary::mul, a, b); }

/// Columns of one gate of [batch, gates · hidden].
Tensor gate(Emit& e, Tensor gates, std::int64_t number, std::int64_t hidden) {
    const std::array<std::int64_t, 2> start{0, number * hidden}, size{Emit::extent(gates, 1), hidden};
    return e.contiguous(e.slice(gates, start, size));
}

/// Tensors of the same extents, one after the other in a new first dimension.
Tensor stacked(Emit& e, std::vector<Tensor> parts) {
    for (Tensor& part : parts) {
        const std::array<std::int64_t, 3> extents{1, Emit::extent(part, 1), Emit::extent(part, 0)};
        part = e.reshape(part, extents);
    }
    while (parts.size() > 1) {
        std::vector<Tensor> pairs;
        for (std::size_t i = 0; i + 1 < parts.size(); i += 2)
            pairs.push_back(e.concat(parts[i], parts[i + 1], 0, 3));
        if (parts.size() % 2) pairs.push_back(parts.back());
        parts = std::move(pairs);
    }
    return parts.front();
}

// Products want operands that begin where a device's memory may be bound: parts are copied.

/// Row `number` of a matrix, which may be absent.
Tensor row(Emit& e, Tensor matrix, std::int64_t number) {
    if (!matrix) return nullptr;
    const std::array<std::int64_t, 2> start{number, 0}, size{1, Emit::extent(matrix, 0)};
    return e.flatten(e.copy(e.slice(matrix, start, size)));
}

/// Matrix `number` of several, which may be absent.
Tensor matrix(Emit& e, Tensor matrices, std::int64_t number) {
    if (!matrices) return nullptr;
    const std::array<std::int64_t, 3> start{number, 0, 0},
        size{1, Emit::extent(matrices, 1), Emit::extent(matrices, 0)};
    const std::array<std::int64_t, 2> extents{size[1], size[2]};
    return e.reshape(e.copy(e.slice(matrices, start, size)), extents);
}

struct CellSteps {
    std::vector<GateFunction> functions;
    std::int64_t hidden_size = 0;
};

Tensor recurrent_sums(Emit& e, const LoweredDirection& d, Tensor hidden) {
    Tensor sums = e.mat_mul_transposed(hidden, d.recurrent_weight);
    return d.recurrent_bias ? add(e, sums, d.recurrent_bias) : sums;
}

struct LstmSteps : CellSteps {
    std::int64_t out, forget, candidate;

    explicit LstmSteps(const LstmAttrs& a)
        : CellSteps{parse_activations(a.activations, 3).value(), a.hidden_size},
          out(a.layout == LstmLayout::ifgo ? 3 : 1),
          forget(a.layout == LstmLayout::ifgo ? 1 : 2),
          candidate(a.layout == LstmLayout::ifgo ? 2 : 3) {}

    void step(Emit& e, LoweredDirection& d, Tensor input) const {
        if (!d.cell) d.cell = e.fill(d.hidden, 0);
        Tensor sums = add(e, recurrent_sums(e, d, d.hidden), input);
        const auto gate_of = [&](std::int64_t number, std::int64_t peep) {
            Tensor sum = gate(e, sums, number, hidden_size);
            if (d.peephole) {
                const std::array start{peep * hidden_size}, size{hidden_size};
                sum = add(e, sum, mul(e, d.cell, e.slice(d.peephole, start, size)));
            }
            return activated(e, functions[0], sum);
        };
        Tensor in = gate_of(0, 0), kept = gate_of(forget, 2), shown = gate_of(out, 1);
        Tensor fresh = activated(e, functions[1], gate(e, sums, candidate, hidden_size));
        d.cell = add(e, mul(e, kept, d.cell), mul(e, in, fresh));
        d.hidden = mul(e, shown, activated(e, functions[2], d.cell));
    }
};

struct GruSteps : CellSteps {
    std::int64_t update;
    bool reset_after;

    explicit GruSteps(const GruAttrs& a)
        : CellSteps{parse_activations(a.activations, 2).value(), a.hidden_size},
          update(a.layout == GruLayout::zrn ? 0 : 1),
          reset_after(a.reset_after) {}

    void step(Emit& e, LoweredDirection& d, Tensor input) const {
        constexpr std::int64_t kNew = 2;
        Tensor sums = recurrent_sums(e, d, d.hidden);
        const auto part = [&](Tensor gates, std::int64_t number) {
            return gate(e, gates, number, hidden_size);
        };
        const auto sum_of = [&](std::int64_t number) {
            return add(e, part(sums, number), part(input, number));
        };
        Tensor update_sum = sum_of(update), mixed = activated(e, functions[0], update_sum);
        // 1 - sigmoid(x) has lost digits where the gate is near 1, and sigmoid(-x) has not.
        Tensor taken = functions[0] == GateFunction::sigmoid
                           ? e.unary(Unary::sigmoid, e.unary(Unary::neg, update_sum))
                           : e.scale(mixed, -1, 1);
        Tensor reset = activated(e, functions[0], sum_of(1 - update));
        Tensor recurrent =
            reset_after ? mul(e, reset, part(sums, kNew)) : new_sums(e, d, mul(e, reset, d.hidden));
        Tensor fresh = activated(e, functions[1], add(e, part(input, kNew), recurrent));
        d.hidden = add(e, mul(e, mixed, d.hidden), mul(e, taken, fresh));
    }
    /// The sums of the new gate alone.
    Tensor new_sums(Emit& e, const LoweredDirection& d, Tensor scaled) const {
        const std::array<std::int64_t, 2> start{2 * hidden_size, 0}, size{hidden_size, hidden_size};
        Tensor sums = e.mat_mul_transposed(scaled, e.copy(e.slice(d.recurrent_weight, start, size)));
        if (!d.recurrent_bias) return sums;
        const std::array first{2 * hidden_size}, count{hidden_size};
        return add(e, sums, e.slice(d.recurrent_bias, first, count));
    }
};

/// Walks all directions and gives the states after every step, by position and direction.
template <class Recurrence>
std::vector<Tensor> walk(Emit& e, const Recurrence& cell, Direction direction,
                         std::vector<LoweredDirection>& directions) {
    const std::int64_t steps = Emit::extent(directions[0].input, 2);
    std::vector<Tensor> states(static_cast<std::size_t>(steps) * directions.size());
    for (std::size_t d = 0; d < directions.size(); ++d) {
        LoweredDirection& state = directions[d];
        const bool backward = d == 1 || direction == Direction::backward;
        for (std::int64_t i = 0; i < steps; ++i) {
            const std::int64_t at = backward ? steps - 1 - i : i;
            Tensor input = matrix(e, state.input, at);
            if (!state.hidden) state.hidden = e.fill(gate(e, input, 0, cell.hidden_size), 0);
            cell.step(e, state, input);
            states[static_cast<std::size_t>(at) * directions.size() + d] = state.hidden;
        }
    }
    return states;
}

}  // namespace

std::vector<LoweredDirection> lowered_directions(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                                 const SequenceOperands& which, Direction direction,
                                                 std::int64_t hidden_size) {
    const auto operand = [&](int i) -> Tensor {
        return i >= 0 && in.has(i) ? to_f32(e, x[static_cast<std::size_t>(i)], in[i].dtype) : nullptr;
    };
    const auto shape = in[0].sizes();
    const std::int64_t rows = which.gates * hidden_size;
    const std::array sequence{shape[0], shape[1], rows};
    const std::array lines{shape[0] * shape[1], shape[2]};
    Tensor input = operand(0), weight = operand(which.weight), bias = operand(which.bias),
           recurrent_weight = operand(which.recurrent_weight), recurrent_bias = operand(which.recurrent_bias),
           peephole = operand(which.peephole), hidden = operand(which.hidden), cell = operand(which.cell);
    std::vector<LoweredDirection> list;
    for (std::int64_t d = 0; d < directions(direction); ++d) {
        Tensor gates = nullptr;
        if (weight) {
            gates = e.mat_mul_transposed(e.reshape(input, lines), matrix(e, weight, d));
            if (bias) gates = add(e, gates, row(e, bias, d));
        } else {
            gates = gate(e, e.reshape(input, lines), d, rows);
        }
        list.push_back({.input = e.reshape(gates, sequence),
                        .recurrent_weight = matrix(e, recurrent_weight, d),
                        .recurrent_bias = row(e, recurrent_bias, d),
                        .peephole = row(e, peephole, d),
                        .hidden = matrix(e, hidden, d),
                        .cell = matrix(e, cell, d)});
    }
    return list;
}

ggml_tensor* cell_input(Emit& e, ggml_tensor* input, ggml_tensor* weight, ggml_tensor* bias) {
    Tensor gates = e.mat_mul_transposed(input, weight);
    if (bias) gates = add(e, gates, bias);
    const std::array<std::int64_t, 3> sequence{1, Emit::extent(gates, 1), Emit::extent(gates, 0)};
    return e.reshape(gates, sequence);
}

Status recurrence_lowerable(const TensorType& input, std::int64_t steps, Direction direction,
                            std::string_view activations, std::int64_t hidden_size) {
    constexpr std::int64_t kFewest = 4;
    if (hidden_size < kFewest) return unsupported("{} hidden values", hidden_size);
    if (activations.find("relu") != std::string_view::npos) return unsupported("activations {}", activations);
    if (steps * directions(direction) > kMostLoweredSteps)
        return unsupported("{} steps in {} directions", steps, directions(direction));
    return works_through_f32(input.dtype);
}

std::vector<ggml_tensor*> as_types(Emit& e, std::vector<ggml_tensor*> outputs,
                                   std::span<const TensorType> types) {
    outputs.resize(types.size());
    for (std::size_t i = 0; i < types.size(); ++i) outputs[i] = from_f32(e, outputs[i], types[i]);
    return outputs;
}

std::vector<ggml_tensor*> lower_lstm(Emit& e, const LstmSequenceAttrs& a,
                                     std::vector<LoweredDirection> directions) {
    std::vector<Tensor> sequence = walk(e, LstmSteps(a), a.direction, directions), hidden, cells;
    for (const LoweredDirection& d : directions) {
        hidden.push_back(d.hidden);
        cells.push_back(d.cell);
    }
    std::vector<Tensor> outputs{stacked(e, hidden), stacked(e, cells)};
    if (a.return_sequence) outputs.push_back(stacked(e, std::move(sequence)));
    return outputs;
}

std::vector<ggml_tensor*> lower_gru(Emit& e, const GruSequenceAttrs& a,
                                    std::vector<LoweredDirection> directions) {
    std::vector<Tensor> sequence = walk(e, GruSteps(a), a.direction, directions), hidden;
    for (const LoweredDirection& d : directions) hidden.push_back(d.hidden);
    std::vector<Tensor> outputs{stacked(e, hidden)};
    if (a.return_sequence) outputs.push_back(stacked(e, std::move(sequence)));
    return outputs;
}

}  // namespace headrace::ops
