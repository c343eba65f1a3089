#pragma once
#include <array>
#include <optional>

#include "ops/recurrent.h"

/// What gru, gru_cell and gru_recurrence share.
namespace headrace::ops {

/// Order of the gates in weights and biases: update z, reset r, new n.
enum class GruLayout : std::uint8_t { zrn, rzn };
constexpr auto enum_names(GruLayout) { return std::array<std::string_view, 2>{"zrn", "rzn"}; }

struct GruAttrs {
    std::int64_t hidden_size = 0;
    bool reset_after = true;
    GruLayout layout = GruLayout::zrn;
    std::string activations = "sigmoid,tanh";

    template <class A>
    static void cell_fields(auto&& f) {
        f("hidden_size", &A::hidden_size, "number of values in the state", kRequired);
        f("reset_after", &A::reset_after,
          "the reset gate scales the state after its product with the weights");
        f("layout", &A::layout, "order of the gates: update z, reset r, new n");
        f("activations", &A::activations, "functions of the gates z and r, and of n");
    }
};

using GruSequenceAttrs = SequenceAttrs<GruAttrs>;

/// The types of the last hidden states, and of the sequence where it is asked for.
inline std::vector<TensorType> gru_types(const TensorType& input, const GruSequenceAttrs& a) {
    const Dim count = directions(a.direction), hidden = a.hidden_size;
    std::vector<TensorType> types{{input.dtype, {count, input.shape[1], hidden}}};
    if (a.return_sequence) types.push_back({input.dtype, {input.shape[0], count, input.shape[1], hidden}});
    return types;
}

/// One direction's state, and how a step changes it. G has input(gate, j, x), recurrent(gate, j, hidden) and
/// their sum.
template <class G>
class GruState {
public:
    GruState(const GruAttrs& a, G gates, std::vector<double> hidden)
        : gates_(gates),
          reset_after_(a.reset_after),
          update_(a.layout == GruLayout::zrn ? 0 : 1),
          functions_(parse_activations(a.activations, 2).value()),
          hidden_(std::move(hidden)),
          scaled_(hidden_.size()),
          next_(hidden_.size()) {}

    void step(const std::vector<double>& x) {
        const auto size = static_cast<std::int64_t>(hidden_.size());
        const std::int64_t reset = 1 - update_;
        constexpr std::int64_t kNew = 2;
        for (std::int64_t j = 0; j < size; ++j) {
            const double r = activate(functions_[0], gates_.sum(reset, j, x, hidden_));
            scaled_[j] = reset_after_ ? r * gates_.recurrent(kNew, j, hidden_) : r * hidden_[j];
        }
        for (std::int64_t j = 0; j < size; ++j) {
            const double recurrent = reset_after_ ? scaled_[j] : gates_.recurrent(kNew, j, scaled_);
            const double n = activate(functions_[1], gates_.input(kNew, j, x) + recurrent);
            const double z = activate(functions_[0], gates_.sum(update_, j, x, hidden_));
            next_[j] = z * hidden_[j] + (1 - z) * n;
        }
        hidden_.swap(next_);
    }
    const std::vector<double>& hidden() const { return hidden_; }

private:
    G gates_;
    bool reset_after_;
    std::int64_t update_;
    std::vector<GateFunction> functions_;
    std::vector<double> hidden_, scaled_, next_;
};

/// The reference over a sequence: gates_of(d) are the gates of direction d; `hidden_state` is the operand
/// with the initial ones.
template <class T, class G>
void run_gru(const TensorArgs& args, const GruSequenceAttrs& a, int hidden_state, G&& gates_of) {
    std::optional<GruState<decltype(gates_of(0))>> state;
    const std::int64_t size = a.hidden_size;
    walk_sequence<T>(
        args, a.direction,
        [&](std::int64_t d, std::int64_t slot) {
            const T* initial = args.has(hidden_state) ? args.in[hidden_state].as<T>() + slot * size : nullptr;
            state.emplace(a, gates_of(d), read_row(initial, size));
        },
        [&](const std::vector<double>& x) { state->step(x); },
        [&](std::int64_t place) {
            if (a.return_sequence) write_row(state->hidden(), args.out[1].as<T>() + place * size);
        },
        [&](std::int64_t slot) { write_row(state->hidden(), args.out[0].as<T>() + slot * size); });
}

}  // namespace headrace::ops
