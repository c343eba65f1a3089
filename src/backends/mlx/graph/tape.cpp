#include "backends/mlx/graph/tape.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_set>

namespace headrace::mlx {

namespace {

bool is_one_of(std::span<const std::string_view> names, const mx::Primitive& primitive) {
    return std::find(names.begin(), names.end(), primitive.name()) != names.end();
}

/// Primitives whose output is their first input's memory.
bool makes_view(const mx::Primitive& primitive) {
    static constexpr std::string_view kNames[] = {"AsStrided",    "Broadcast", "ExpandDims", "Flatten",
                                                  "InPlaceWrite", "Slice",     "Squeeze",    "Transpose",
                                                  "Unflatten",    "View"};
    return is_one_of(kNames, primitive);
}

/// Primitives whose output is their only input's memory, or may be.
bool may_be_view(const mx::Primitive& primitive) {
    static constexpr std::string_view kNames[] = {"AsStrided", "Broadcast", "Contiguous", "ExpandDims",
                                                  "Flatten",   "Reshape",   "Slice",      "Squeeze",
                                                  "Transpose", "Unflatten"};
    return is_one_of(kNames, primitive);
}

}  // namespace

/// Walks an expression from its outputs and writes each primitive after those it needs.
class Tape::Recorder {
public:
    Recorder(Tape& tape, const std::vector<std::pair<Leaf, array>>& leaves) : tape_(tape) {
        for (const auto& [leaf, value] : leaves) {
            const int slot = new_slot(value);
            tape_.leaves_.emplace_back(slot, leaf);
            in_memory_.insert(slot);
            tape_.recorded_leaves_.emplace(slot, value);
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
            in_memory_.insert(tape_.constants_.back().first);
            return;
        }
        Step step{.primitive = value.primitive_ptr()};
        for (const array& input : value.inputs()) step.inputs.push_back(slots_.at(input.id()));
        for (const array& sibling : value.outputs()) {
            step.shapes.push_back(sibling.shape());
            step.dtypes.push_back(sibling.dtype());
            step.outputs.push_back(new_slot(sibling));
        }
        note_candidate(step, value);
        tape_.steps_.push_back(std::move(step));
    }

    void note_candidate(const Step& step, const array& value) {
        const bool possible = step.inputs.size() == 1 && step.outputs.size() == 1 && value.size() > 0 &&
                              in_memory_.contains(step.inputs[0]) && may_be_view(*step.primitive);
        if (!possible) return;
        in_memory_.insert(step.outputs[0]);
        tape_.candidates_.push_back({tape_.steps_.size(), step.inputs[0], value});
    }

    Tape& tape_;
    std::unordered_set<int> in_memory_;  ///< slots of leaves, constants, and what may be a view of one
    std::unordered_map<std::uintptr_t, int> slots_;
    std::vector<array> kept_;  ///< an id is an address: none may be given to another array meanwhile
};

Tape::Tape(const std::vector<array>& outputs, const std::vector<std::pair<Leaf, array>>& leaves) {
    Recorder recorder(*this, leaves);
    for (const array& output : outputs) outputs_.push_back(recorder.visit(output));
    peak_bytes_ = measure_peak();
}

namespace {

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

void Tape::learn_views() {
    std::unordered_set<std::size_t> replaced;
    std::unordered_map<int, int> leaf_of;  // of slots that are views
    for (const auto& [slot, leaf] : leaves_) leaf_of[slot] = slot;
    std::unordered_set<int> fixed;
    for (const auto& [slot, value] : constants_) fixed.insert(slot);
    for (const Candidate& c : candidates_) {
        const int slot = steps_[c.step].outputs[0];
        if (fixed.contains(c.source)) {
            constants_.emplace_back(slot, c.result);
            fixed.insert(slot);
            replaced.insert(c.step);
            continue;
        }
        const auto source = leaf_of.find(c.source);
        if (source == leaf_of.end()) continue;
        const array& leaf = recorded_leaves_.at(source->second);
        if (c.result.buffer().ptr() != leaf.buffer().ptr()) continue;  // it was copied
        const auto bytes = c.result.data<char>() - leaf.data<char>();
        leaf_of[slot] = source->second;
        views_.push_back({slot, source->second, c.result.shape(), c.result.strides(), c.result.dtype(),
                          c.result.flags(), c.result.data_size(),
                          bytes / static_cast<std::int64_t>(c.result.itemsize())});
        replaced.insert(c.step);
    }
    std::vector<Step> kept;
    for (std::size_t i = 0; i < steps_.size(); ++i)
        if (!replaced.contains(i)) kept.push_back(std::move(steps_[i]));
    steps_ = std::move(kept);
    candidates_.clear();
    recorded_leaves_.clear();
    note_last_uses();
}

void Tape::note_last_uses() {
    std::unordered_set<int> used_later(outputs_.begin(), outputs_.end());
    for (const auto& [slot, value] : constants_) used_later.insert(slot);  // the tape keeps them anyway
    for (std::size_t i = steps_.size(); i-- > 0;) {
        Step& step = steps_[i];
        step.is_last_use.resize(step.inputs.size());
        for (std::size_t k = step.inputs.size(); k-- > 0;)
            step.is_last_use[k] = used_later.insert(step.inputs[k]).second;
    }
}

std::vector<std::optional<array>> Tape::given() const {
    std::vector<std::optional<array>> slots(slots_);
    for (const auto& [slot, leaf] : leaves_) slots[slot] = load(leaf);
    for (const auto& [slot, value] : constants_) slots[slot] = value;
    for (const View& v : views_) {
        array& view = slots[v.slot].emplace(v.shape, v.dtype, nullptr, std::vector<array>{});
        view.copy_shared_buffer(*slots[v.leaf], v.strides, v.flags, v.data_size, v.offset);
        view.set_status(array::Status::available);
    }
    return slots;
}

std::vector<array> Tape::play() const {
    std::vector<std::optional<array>> slots = given();
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
