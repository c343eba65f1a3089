#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/run_stop.h"
#include "ops/arithmetic.h"
#include "ops/infer.h"
#include "ops/op.h"

/// What gru and lstm share.
namespace headrace::ops {

enum class Direction : std::uint8_t { forward, backward, both };
constexpr auto enum_names(Direction) {
    return std::array<std::string_view, 3>{"forward", "backward", "both"};
}

inline std::int64_t directions(Direction d) { return d == Direction::both ? 2 : 1; }

/// A cell's attributes, and those of a sequence.
template <class Cell>
struct SequenceAttrs : Cell {
    bool return_sequence = false;
    Direction direction = Direction::forward;

    template <class A>
    static void sequence_fields(auto&& f) {
        f("return_sequence", &A::return_sequence, "one more output has the state after every step");
        f("direction", &A::direction, "both: two networks, one of them from the end to the beginning");
    }
};

/// The activations that the specification allows in recurrent networks.
enum class GateFunction : std::uint8_t { relu, sigmoid, tanh };

inline double activate(GateFunction f, double x) {
    switch (f) {
        case GateFunction::relu: return x < 0 ? 0 : x;
        case GateFunction::sigmoid: return 1 / (1 + std::exp(-x));
        case GateFunction::tanh: return std::tanh(x);
    }
    return x;
}

/// Reads "sigmoid,tanh": exactly `count` names.
inline Result<std::vector<GateFunction>> parse_activations(std::string_view names, std::size_t count) {
    constexpr std::array<std::string_view, 3> known{"relu", "sigmoid", "tanh"};
    std::vector<GateFunction> list;
    for (std::size_t begin = 0; begin <= names.size();) {
        const std::size_t end = std::min(names.find(',', begin), names.size());
        const std::string_view name = names.substr(begin, end - begin);
        const auto found = std::find(known.begin(), known.end(), name);
        if (found == known.end()) return invalid("activation '{}' is none of relu, sigmoid and tanh", name);
        list.push_back(static_cast<GateFunction>(found - known.begin()));
        begin = end + 1;
    }
    if (list.size() != count) return invalid("activations must be {} names, got '{}'", count, names);
    return list;
}

inline Status check_hidden_size(std::int64_t size) {
    if (size >= 1 && size <= INT32_MAX / 4) return success();
    return invalid("hidden_size must be from 1 to {}, got {}", INT32_MAX / 4, size);
}

/// Rules of float operands of a fixed rank, after the input.
constexpr OperandRule required(std::string_view name, int rank) {
    return {.name = name, .dtypes = kFloats, .same_dtype_as = 0, .min_rank = rank, .max_rank = rank};
}
constexpr OperandRule optional(std::string_view name, int rank) {
    OperandRule rule = required(name, rank);
    rule.optional = true;
    return rule;
}

/// The given `steps` must be the input's first extent.
inline Status check_steps(const Operands& in, const Dim& extent, std::int64_t steps) {
    if (same_extent(in, extent, steps)) return success();
    return invalid("steps is {} but the input has {} steps", steps, extent.str());
}

/// Operand i, if given, has the expected shape.
inline Status check_shape(const Operands& in, std::span<const OperandRule> rules, int i,
                          const Shape& expected) {
    if (!in.has(i) || same_shape(in, in[i].shape, expected)) return success();
    return invalid("{} has shape {} but must have shape {}", rules[i].name, str(in[i].shape), str(expected));
}

/// Dot product of stored weights with a state, in eight interleaved sums that the compiler can vectorise.
template <class T>
double dot(const T* weights, const std::vector<double>& x) {
    constexpr std::size_t kLanes = 8;
    double sums[kLanes] = {};
    std::size_t i = 0;
    for (; i + kLanes <= x.size(); i += kLanes)
        for (std::size_t l = 0; l < kLanes; ++l) sums[l] += convert<double>(weights[i + l]) * x[i + l];
    for (; i < x.size(); ++i) sums[0] += convert<double>(weights[i]) * x[i];
    double total = 0;
    for (double s : sums) total += s;
    return total;
}

/// The gates of one direction: gate(g, j) = weight · input + bias and recurrent(g, j) = weight · state + bias
/// of row j of gate g. Absent biases are null.
template <class T>
struct Gates {
    const T *weight, *recurrent_weight, *bias, *recurrent_bias;
    std::int64_t hidden;

    double input(std::int64_t gate, std::int64_t j, const std::vector<double>& x) const {
        const std::int64_t row = gate * hidden + j;
        return dot(weight + row * static_cast<std::int64_t>(x.size()), x) +
               (bias ? convert<double>(bias[row]) : 0);
    }
    double recurrent(std::int64_t gate, std::int64_t j, const std::vector<double>& h) const {
        const std::int64_t row = gate * hidden + j;
        return dot(recurrent_weight + row * hidden, h) +
               (recurrent_bias ? convert<double>(recurrent_bias[row]) : 0);
    }
    double sum(std::int64_t gate, std::int64_t j, const std::vector<double>& x,
               const std::vector<double>& h) const {
        return input(gate, j, x) + recurrent(gate, j, h);
    }
};

/// Gates of which the input's share is known: x has it for all directions, this one's from `first` on.
template <class T>
struct KnownInputGates {
    Gates<T> state;
    std::int64_t first;

    double input(std::int64_t gate, std::int64_t j, const std::vector<double>& x) const {
        return x[static_cast<std::size_t>(first + gate * state.hidden + j)];
    }
    double recurrent(std::int64_t gate, std::int64_t j, const std::vector<double>& h) const {
        return state.recurrent(gate, j, h);
    }
    double sum(std::int64_t gate, std::int64_t j, const std::vector<double>& x,
               const std::vector<double>& h) const {
        return input(gate, j, x) + recurrent(gate, j, h);
    }
};

/// The gates of direction d, from operands weight, recurrent weight and the two optional biases.
template <class T>
Gates<T> gates_of(const TensorArgs& args, std::array<int, 4> operands, std::int64_t d, std::int64_t count,
                  std::int64_t hidden) {
    const auto at = [&](int i, std::int64_t stride) {
        return args.has(operands[i]) ? args.in[operands[i]].as<T>() + d * stride : nullptr;
    };
    const std::int64_t rows = count * hidden;
    return {at(0, rows * args.in[0].shape.back()), at(1, rows * hidden), at(2, rows), at(3, rows), hidden};
}

template <class T>
std::vector<double> read_row(const T* from, std::int64_t count) {
    std::vector<double> row(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = from ? convert<double>(from[i]) : 0;
    return row;
}

template <class T>
void write_row(const std::vector<double>& row, T* to) {
    for (std::size_t i = 0; i < row.size(); ++i) to[i] = convert<T>(row[i]);
}

/// Walks a sequence of shape [steps, batch, inputs] in each direction, one batch row after the other:
/// begin(d, row) starts, step(x) takes one input, store(place) writes the state to the sequence output
/// [steps, directions, batch] (by input position), end(place) to the final output [directions, batch]. Rows
/// do not depend on each other, so threads share them.
template <class T, class Begin, class Step, class Store, class End>
void walk_sequence(const TensorArgs& args, Direction direction, Begin&& begin, Step&& step, Store&& store,
                   End&& end) {
    const auto shape = args.in[0].shape;
    const std::int64_t steps = shape[0], batch = shape[1], inputs = shape[2],
                       slots = directions(direction) * batch;
    const auto part = args.share.of(slots);
    for (std::int64_t slot = part.begin; slot < part.end; ++slot) {
        const std::int64_t d = slot / batch, row = slot % batch;
        const bool backward = d == 1 || direction == Direction::backward;
        begin(d, slot);
        for (std::int64_t i = 0; i < steps; ++i) {
            check_stop();
            const std::int64_t at = backward ? steps - 1 - i : i;
            step(read_row(args.in[0].as<T>() + (at * batch + row) * inputs, inputs));
            store(at * slots + slot);
        }
        end(slot);
    }
}

/// The cost of multiplying so many weights in each step.
inline Cost recurrence_cost(const Operands& in, std::span<const TensorType> out, std::int64_t weights,
                            std::int64_t steps) {
    Cost cost = elementwise_cost(in, out, 0);
    cost.flops = 2.0 * static_cast<double>(weights) * static_cast<double>(steps);
    return cost;
}

/// Makes the operands of a sample, of one dtype.
struct RecurrentSample {
    DType dtype;

    SampleOperand operator()(Shape shape, bool absent = false) const {
        return {.type = {dtype, std::move(shape)}, .low = -1, .high = 1, .absent = absent};
    }
    double tolerance() const { return dtype == DType::f16 ? 4e-3 : 1e-5; }
};

}  // namespace headrace::ops
