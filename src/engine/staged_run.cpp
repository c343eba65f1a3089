#include "engine/staged_run.h"

#include <algorithm>
#include <cstring>

namespace headrace {

Result<ConstView> StagedRun::view(ValueId id) const {
    const Value& value = graph_.value(id);
    if (const auto it = held_.find(id); it != held_.end())
        return ConstView{value.type.dtype, it->second.shape,
                         static_cast<const std::byte*>(it->second.data())};
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i)
        if (graph_.inputs[i] == id)
            return ConstView{value.type.dtype, inputs_[i].shape,
                             static_cast<const std::byte*>(inputs_[i].data)};
    return unsupported("'{}' is no input and computed by no stage", value.name);
}

Status StagedRun::count(const Stage& stage) {
    for (NodeId id : stage.counting) {
        const Node& node = graph_.node(id);
        std::vector<ConstView> operands;
        std::vector<std::vector<std::int64_t>> sizes(node.inputs.size());
        for (std::size_t i = 0; i < node.inputs.size(); ++i) {
            const ValueId operand = node.inputs[i];
            if (operand == kNoValue) {
                operands.emplace_back();
                continue;
            }
            const Value& value = graph_.value(operand);
            if (value.kind == ValueKind::constant || value.kind == ValueKind::state) {
                sizes[i] = value.type.sizes();
                const auto at = std::ranges::find(graph_.states, operand) - graph_.states.begin();
                operands.push_back({value.type.dtype, sizes[i],
                                    value.kind == ValueKind::state
                                        ? states_[static_cast<std::size_t>(at)]->data()
                                        : value.constant->bytes.data()});
            } else {
                HR_ASSIGN(const ConstView found, view(operand));
                operands.push_back(found);
            }
        }
        const auto symbols = counted_symbols(node);
        const auto counted = node.op->count(operands, node.attrs.get());
        for (std::size_t i = 0; i < symbols.size(); ++i) counts_[symbols[i]] = counted[i];
    }
    return success();
}

std::vector<InputView> StagedRun::inputs_of(const Stage& stage) {
    std::vector<InputView> views(inputs_.begin(), inputs_.end());
    for (ValueId id : stage.carried)
        views.push_back({graph_.value(id).type.dtype, held_.at(id).shape, held_.at(id).data()});
    empty_shapes_.clear();
    for (const std::string& symbol : stage.symbols) empty_shapes_.push_back({counts_.at(symbol), 0});
    for (const auto& shape : empty_shapes_) views.push_back({DType::u8, shape, nullptr});
    return views;
}

Status StagedRun::run_stage(const Stage& stage, Session& session, const RunOptions& options) {
    const auto views = inputs_of(stage);
    const Session::MakeOutputs make = [&](const std::vector<std::vector<std::int64_t>>& shapes) {
        std::vector<OutputView> outputs;
        for (std::size_t i = 0; i < shapes.size(); ++i) {
            Held& held = held_[stage.made[i]];
            held.shape = shapes[i];
            if (!held.elsewhere) {
                const auto bytes = bytes_of(graph_.value(stage.made[i]).type.dtype,
                                            ConstView{DType::u8, held.shape}.elements());
                held.memory = value_or_throw(
                    PooledBuffer::take(*exe_.buffers, bytes, "a value between stages", reuse_));
            }
            outputs.push_back(
                {const_cast<void*>(held.data()), bytes_of(graph_.value(stage.made[i]).type.dtype,
                                                          ConstView{DType::u8, held.shape}.elements())});
        }
        return outputs;
    };
    try {
        session.run(views, make, options);
    } catch (const Exception& e) {
        return Error{e.code(), e.what()};
    }
    return success();
}

Status StagedRun::run_last(const Stage& stage, Session& session, const Session::MakeOutputs& make_outputs,
                           const RunOptions& options) {
    const auto views = inputs_of(stage);
    std::vector<OutputView> outputs;
    const Session::MakeOutputs make = [&](const std::vector<std::vector<std::int64_t>>& made) {
        for (std::size_t i = 0; i < made.size(); ++i) held_[stage.made[i]].shape = made[i];
        std::vector<std::vector<std::int64_t>> shapes;
        for (const auto& [name, id] : graph_.outputs) {
            const auto sizes = graph_.value(id).kind == ValueKind::constant ? graph_.value(id).type.sizes()
                                                                            : std::vector<std::int64_t>();
            if (graph_.value(id).kind == ValueKind::constant) {
                shapes.push_back(sizes);
                continue;
            }
            const auto shape = value_or_throw(view(id)).shape;
            shapes.emplace_back(shape.begin(), shape.end());
        }
        outputs = make_outputs(shapes);
        if (outputs.size() != graph_.outputs.size())
            throw Exception(Code::invalid_argument, fmt::format("{} outputs given, the graph has {}",
                                                                outputs.size(), graph_.outputs.size()));
        std::vector<OutputView> here;
        for (std::size_t i = 0; i < made.size(); ++i) {
            Held& held = held_[stage.made[i]];
            const auto at =
                std::ranges::find(graph_.outputs, stage.made[i], &std::pair<std::string, ValueId>::second);
            const OutputView& target = outputs[static_cast<std::size_t>(at - graph_.outputs.begin())];
            held.elsewhere = target.data;
            here.push_back(target);
        }
        return here;
    };
    try {
        session.run(views, make, options);
    } catch (const Exception& e) {
        return Error{e.code(), e.what()};
    }
    return copy_outputs(outputs);
}

/// Outputs that an earlier stage made, or that are one value with another.
Status StagedRun::copy_outputs(std::span<const OutputView> outputs) const {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const auto& [name, id] = graph_.outputs[i];
        const Value& value = graph_.value(id);
        const void* from = nullptr;
        std::size_t bytes = 0;
        if (value.kind == ValueKind::constant) {
            from = value.constant->bytes.data();
            bytes = value.constant->bytes.size();
        } else {
            HR_ASSIGN(const ConstView found, view(id));
            from = found.data;
            bytes = bytes_of(value.type.dtype, found.elements());
        }
        if (outputs[i].bytes != bytes)
            return invalid("output '{}': {} bytes of memory given, it needs {}", name, outputs[i].bytes,
                           bytes);
        if (outputs[i].data != from && bytes > 0) std::memmove(outputs[i].data, from, bytes);
    }
    return success();
}

void StagedRun::release_after(std::size_t stage) {
    for (auto it = held_.begin(); it != held_.end();) {
        const ValueId id = it->first;
        bool is_read = std::ranges::any_of(graph_.outputs, [&](const auto& out) { return out.second == id; });
        for (std::size_t s = stage + 1; s < exe_.stages.size() && !is_read; ++s) {
            const Stage& later = exe_.stages[s].stage;
            is_read = std::ranges::count(later.carried, id) > 0 ||
                      std::ranges::any_of(later.counting, [&](NodeId node) {
                          return std::ranges::count(graph_.node(node).inputs, id) > 0;
                      });
        }
        it = is_read ? std::next(it) : held_.erase(it);
    }
}

Status StagedRun::run(std::span<Session> sessions, const Session::MakeOutputs& make_outputs,
                      const RunOptions& options) {
    for (std::size_t s = 0; s < sessions.size(); ++s) {
        const Stage& stage = exe_.stages[s].stage;
        HR_TRY(count(stage));
        if (s + 1 == sessions.size()) return run_last(stage, sessions[s], make_outputs, options);
        HR_TRY(run_stage(stage, sessions[s], options));
        release_after(s);
    }
    return success();
}

}  // namespace headrace
