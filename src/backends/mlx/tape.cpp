#include "backends/mlx/tape.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>

namespace headrace::mlx {

/// Walks an expression from its outputs and writes each primitive after those it needs.
class Tape::Recorder {
public:
    Recorder(Tape& tape, const std::vector<std::pair<Leaf, array>>& leaves) : tape_(tape) {
        for (const auto& [leaf, value] : leaves) {
            const int slot = new_slot(value);
            tape_.leaves_.emplace_back(slot, leaf);
        }
    }

    /// Expressions are as deep as a model is, so the walk keeps a stack of its own.
    int visit(const array& output) {
        std::vector<array> pending{output};
        while (!pending.empty()) {
            const array current = pending.back();
            if (slots_.contains(current.id())) {
                pending.pop_back();
                continue;
            }
            const std::size_t before = pending.size();
            for (const array& input : current.inputs())
                if (!slots_.contains(input.id())) pending.push_back(input);
            if (pending.size() > before) continue;
            pending.pop_back();
            record(current);
        }
        return slots_.at(output.id());
    }

private:
    int new_slot(const array& value) {
        slots_.emplace(value.id(), tape_.slots_);
        kept_.push_back(value);
        return tape_.slots_++;
    }

    void record(array value) {
        if (!value.has_primitive()) {
            tape_.constants_.emplace_back(new_slot(value), value);
            return;
        }
        Step step{.primitive = value.primitive_ptr()};
        for (const array& input : value.inputs()) step.inputs.push_back(slots_.at(input.id()));
        for (const array& sibling : value.outputs()) {
            step.shapes.push_back(sibling.shape());
            step.dtypes.push_back(sibling.dtype());
            step.outputs.push_back(new_slot(sibling));
        }
        tape_.steps_.push_back(std::move(step));
    }

    Tape& tape_;
    std::unordered_map<std::uintptr_t, int> slots_;
    std::vector<array> kept_;  ///< an id is an address: none may be given to another array meanwhile
};

Tape::Tape(const std::vector<array>& outputs, const std::vector<std::pair<Leaf, array>>& leaves) {
    Recorder recorder(*this, leaves);
    for (const array& output : outputs) outputs_.push_back(recorder.visit(output));
    peak_bytes_ = measure_peak();
}

namespace {

/// Primitives whose output is their first input's memory.
bool makes_view(const mx::Primitive& primitive) {
    static constexpr std::string_view kNames[] = {"AsStrided",    "Broadcast", "ExpandDims", "Flatten",
                                                  "InPlaceWrite", "Slice",     "Squeeze",    "Transpose",
                                                  "Unflatten",    "View"};
    return std::find(std::begin(kNames), std::end(kNames), primitive.name()) != std::end(kNames);
}

std::size_t bytes_of(const Shape& shape, mx::Dtype dtype) {
    std::size_t bytes = mx::size_of(dtype);
    for (const int extent : shape) bytes *= static_cast<std::size_t>(extent);
    return bytes;
}

}  // namespace

std::size_t Tape::measure_peak() const {
    std::vector<int> owner(slots_), last_use(slots_, -1);
    std::vector<std::size_t> bytes(slots_, 0);
    for (int slot = 0; slot < slots_; ++slot) owner[slot] = slot;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
        const Step& step = steps_[i];
        for (const int slot : step.inputs) last_use[owner[slot]] = static_cast<int>(i);
        for (std::size_t k = 0; k < step.outputs.size(); ++k) {
            const int slot = step.outputs[k];
            if (makes_view(*step.primitive))
                owner[slot] = owner[step.inputs[0]];
            else
                bytes[slot] = bytes_of(step.shapes[k], step.dtypes[k]);
            last_use[owner[slot]] = static_cast<int>(i);
        }
    }
    for (const int slot : outputs_) last_use[owner[slot]] = static_cast<int>(steps_.size());
    std::size_t live = 0, peak = 0;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
        for (const int slot : steps_[i].outputs) live += bytes[slot];
        peak = std::max(peak, live);
        const auto release = [&](int slot) {
            if (last_use[slot] != static_cast<int>(i)) return;
            live -= bytes[slot];
            bytes[slot] = 0;
        };
        for (const int slot : steps_[i].inputs) release(owner[slot]);
        for (const int slot : steps_[i].outputs) release(owner[slot]);
    }
    return peak;
}

std::vector<array> Tape::play() const {
    std::vector<std::optional<array>> slots(slots_);
    for (const auto& [slot, leaf] : leaves_) slots[slot] = load(leaf);
    for (const auto& [slot, value] : constants_) slots[slot] = value;
    for (const Step& step : steps_) {
        std::vector<array> inputs;
        inputs.reserve(step.inputs.size());
        for (const int slot : step.inputs) inputs.push_back(*slots[slot]);
        if (step.outputs.size() == 1) {
            slots[step.outputs[0]].emplace(step.shapes[0], step.dtypes[0], step.primitive, std::move(inputs));
            continue;
        }
        const auto made = array::make_arrays(step.shapes, step.dtypes, step.primitive, inputs);
        for (std::size_t i = 0; i < made.size(); ++i) slots[step.outputs[i]] = made[i];
    }
    std::vector<array> outputs;
    outputs.reserve(outputs_.size());
    for (const int slot : outputs_) outputs.push_back(*slots[slot]);
    return outputs;
}

}  // namespace headrace::mlx
