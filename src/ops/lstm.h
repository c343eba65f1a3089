#pragma once
#include <array>
#include <optional>

#include "ops/recurrent.h"

/// What lstm, lstm_cell and lstm_recurrence share.
namespace headrace::ops {

/// Order of the gates in weights and biases: input i, output o, forget f, cell g.
enum class LstmLayout : std::uint8_t { iofg, ifgo };
constexpr auto enum_names(LstmLayout) { return std::array<std::string_view, 2>{"iofg", "ifgo"}; }

struct LstmAttrs {
    std::int64_t hidden_size = 0;
    LstmLayout layout = LstmLayout::iofg;
    std::string activations = "sigmoid,tanh,tanh";

    template <class A>
    static void cell_fields(auto&& f) {
        f("hidden_size", &A::hidden_size, "number of values in the state", kRequired);
        f("layout", &A::layout, "order of the gates: input i, output o, forget f, cell g");
        f("activations", &A::activations,
          "functions of the gates i, o and f, of g, and of the cell in the output");
    }
};

using LstmSequenceAttrs = SequenceAttrs<LstmAttrs>;

/// The types of the last hidden states, the last cells, and the sequence where it is asked for.
inline std::vector<TensorType> lstm_types(const TensorType& input, const LstmSequenceAttrs& a) {
    const Dim count = directions(a.direction), hidden = a.hidden_size;
    const TensorType state{input.dtype, {count, input.shape[1], hidden}};
    std::vector<TensorType> types{state, state};
    if (a.return_sequence) types.push_back({input.dtype, {input.shape[0], count, input.shape[1], hidden}});
    return types;
}

/// One direction's state, and how a step changes it. gates.sum(gate, j, x, hidden) is row j of a gate.
template <class T, class G>
class LstmState {
public:
    /// `peephole` is null or has the weights with which the cell enters the gates i, o and f, in this order.
    LstmState(const LstmAttrs& a, G gates, const T* peephole, std::vector<double> hidden,
              std::vector<double> cell)
        : gates_(gates),
          peephole_(peephole),
          ifgo_(a.layout == LstmLayout::ifgo),
          functions_(parse_activations(a.activations, 3).value()),
          hidden_(std::move(hidden)),
          cell_(std::move(cell)),
          next_(hidden_.size()) {}

    void step(const std::vector<double>& x) {
        const auto size = static_cast<std::int64_t>(hidden_.size());
        const std::int64_t out = ifgo_ ? 3 : 1, forget = ifgo_ ? 1 : 2, candidate = ifgo_ ? 2 : 3;
        for (std::int64_t j = 0; j < size; ++j) {
            // All three gates see the previous cell, as in the specification; ONNX's o sees the new one.
            const auto peep = [&](int gate) {
                return peephole_ ? convert<double>(peephole_[gate * size + j]) * cell_[j] : 0.0;
            };
            const double i = activate(functions_[0], gates_.sum(0, j, x, hidden_) + peep(0));
            const double o = activate(functions_[0], gates_.sum(out, j, x, hidden_) + peep(1));
            const double f = activate(functions_[0], gates_.sum(forget, j, x, hidden_) + peep(2));
            const double g = activate(functions_[1], gates_.sum(candidate, j, x, hidden_));
            cell_[j] = f * cell_[j] + i * g;
            next_[j] = o * activate(functions_[2], cell_[j]);
        }
        hidden_.swap(next_);
    }
    const std::vector<double>& hidden() const { return hidden_; }
    const std::vector<double>& cell() const { return cell_; }

private:
    G gates_;
    const T* peephole_;
    bool ifgo_;
    std::vector<GateFunction> functions_;
    std::vector<double> hidden_, cell_, next_;
};

/// The reference over a sequence: gates_of(d) are the gates of direction d; `peephole` is the operand with
/// the peepholes, before those with the initial hidden states and cells.
template <class T, class G>
void run_lstm(const TensorArgs& args, const LstmSequenceAttrs& a, int peephole, G&& gates_of) {
    std::optional<LstmState<T, decltype(gates_of(0))>> state;
    const std::int64_t size = a.hidden_size;
    const auto initial = [&](int operand, std::int64_t at) {
        return args.has(operand) ? args.in[operand].as<T>() + at : nullptr;
    };
    walk_sequence<T>(
        args, a.direction,
        [&](std::int64_t d, std::int64_t slot) {
            state.emplace(a, gates_of(d), initial(peephole, d * 3 * size),
                          read_row(initial(peephole + 1, slot * size), size),
                          read_row(initial(peephole + 2, slot * size), size));
        },
        [&](const std::vector<double>& x) { state->step(x); },
        [&](std::int64_t place) {
            if (a.return_sequence) write_row(state->hidden(), args.out[2].as<T>() + place * size);
        },
        [&](std::int64_t slot) {
            write_row(state->hidden(), args.out[0].as<T>() + slot * size);
            write_row(state->cell(), args.out[1].as<T>() + slot * size);
        });
}

}  // namespace headrace::ops
