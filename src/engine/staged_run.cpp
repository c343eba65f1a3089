#include "engine/staged_run.h"

#include <algorithm>
#include <cstring>

#include "engine/loop_run.h"
#include "ir/kernel_error.h"
#include "ir/node_attr.h"

namespace headrace {
namespace {

Status run_session(Session& session, std::span<const InputView> inputs, const Session::MakeOutputs& make,
                   const RunOptions& options) {
    try {
        session.run(inputs, make, options);
    } catch (const Exception& e) {
        return Error{e.code(), e.what()};
    }
    return success();
}

}  // namespace

Result<ConstView> StagedRun::view(ValueId id) {
    const Value& value = graph_.value(id);
    if (const auto it = held_.find(id); it != held_.end()) return it->second.view();
    if (value.kind == ValueKind::constant) {
        auto [plain, is_new] = constants_.try_emplace(value.constant.get());
        if (is_new) {
            HR_ASSIGN(plain->second, AlignedBytes::of(*value.constant));
        }
        return ConstView{value.type.dtype, sizes_.emplace_back(value.type.sizes()), plain->second.data()};
    }
    if (value.kind == ValueKind::state) {
        const auto at = std::ranges::find(graph_.states, id) - graph_.states.begin();
        TensorMemory& memory = *states_[static_cast<std::size_t>(at)];
        HR_TRY(memory.bring_to_host());
        return ConstView{value.type.dtype, sizes_.emplace_back(value.type.sizes()), memory.host()};
    }
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i)
        if (graph_.inputs[i] == id) {
            if (inputs_[i].memory) HR_TRY(inputs_[i].memory->bring_to_host());
            return ConstView{value.type.dtype, inputs_[i].shape,
                             static_cast<const std::byte*>(inputs_[i].data)};
        }
    return unsupported("'{}' is no input and computed by no stage", value.name);
}

Result<std::vector<ConstView>> StagedRun::operands_of(const Node& node) {
    std::vector<ConstView> operands;
    for (ValueId id : node.inputs) {
        if (id == kNoValue) {
            operands.emplace_back();
            continue;
        }
        HR_ASSIGN(const ConstView found, view(id));
        operands.push_back(found);
    }
    return operands;
}

Status StagedRun::see_to(NodeId id) {
    const Node& node = graph_.node(id);
    HR_ASSIGN(const auto operands, operands_of(node));
    const auto status = [&] {
        switch (node.op->control) {
            case Control::branch: return branch(id, operands);
            case Control::repeat: return repeat(id, operands);
            default: return count(node, operands);
        }
    }();
    return status.ok() ? success() : Status(status.error().within(node.title()));
}

Status StagedRun::count(const Node& node, std::span<const ConstView> operands) {
    const auto symbols = counted_symbols(node);
    try {
        const auto counted = node.op->count(operands, node.attrs.get());
        for (std::size_t i = 0; i < symbols.size(); ++i) counts_[symbols[i]] = counted[i];
    } catch (const KernelError& error) {
        return invalid("{}", error.what());
    }
    return success();
}

Status StagedRun::branch(NodeId id, std::span<const ConstView> operands) {
    const Node& node = graph_.node(id);
    const bool is_then = *operands[0].data != std::byte{0};
    const auto then_values = static_cast<std::size_t>(attr<std::int64_t>(node, "then_values"));
    const Graph& body = *attr<GraphPtr>(node, is_then ? "then_body" : "else_body");
    const auto values = is_then ? operands.subspan(1, then_values) : operands.subspan(1 + then_values);
    std::vector<InputView> inputs;
    for (const ConstView& v : values) inputs.push_back({v.dtype, v.shape, v.data});
    std::vector<Held> results(body.outputs.size());
    HR_TRY(run_body(sessions_.bodies.at(id)[is_then ? 0 : 1], inputs, [&](const auto& shapes) {
        std::vector<OutputView> outputs;
        for (std::size_t i = 0; i < shapes.size(); ++i) {
            const DType dtype = body.value(body.outputs[i].second).type.dtype;
            value_or_throw(results[i].become(*exe_.buffers, dtype, shapes[i], options_.reuse_buffers));
            outputs.push_back({results[i].memory.data(), results[i].bytes()});
        }
        return outputs;
    }));
    return keep_results(node, std::move(results));
}

Status StagedRun::repeat(NodeId id, std::span<const ConstView> operands) {
    const Node& node = graph_.node(id);
    Session& session = sessions_.bodies.at(id)[0];
    LoopRun loop(node, operands, *exe_.buffers, options_.reuse_buffers,
                 [&](const Dim& d) { return known_extent(d); });
    HR_TRY(loop.run(
        [&](std::span<const InputView> inputs, const Session::MakeOutputs& make) {
            ++iterations_;
            return run_body(session, inputs, make);
        },
        [&] { return iterations_ < options_.most_iterations; }));
    HR_ASSIGN(auto results, loop.take_results());
    return keep_results(node, std::move(results));
}

/// -1 where nothing that this run has counted so far tells it.
std::int64_t StagedRun::known_extent(const Dim& d) const {
    ShapeKey shapes;
    for (const InputView& input : inputs_) shapes.emplace_back(input.shape.begin(), input.shape.end());
    auto bindings = bind_symbols(graph_, shapes);
    if (!bindings.ok()) return -1;
    for (const auto& [symbol, number] : counts_) bindings.value()[symbol] = number;
    const Dim known = bound(d, bindings.value());
    return known.is_symbolic() ? -1 : known.size();
}

Status StagedRun::run_body(Session& body, std::span<const InputView> inputs,
                           const Session::MakeOutputs& make) {
    RunOptions options = options_;
    options.most_iterations -= iterations_;
    const Status status = run_session(body, inputs, make, options);
    iterations_ += body.iterations();
    return status;
}

/// And gives the symbols that they count their values.
Status StagedRun::keep_results(const Node& node, std::vector<Held> results) {
    const auto symbols = counted_symbols(node);
    const auto declared = attr<Shape>(node, "results");
    std::size_t at = 0;
    for (std::size_t i = 0; i < results.size(); ++i) {
        for (const std::int64_t extent : results[i].shape) {
            const Dim& d = declared[at++];
            if (!d.is_symbolic() && d.size() != extent)
                return invalid("result {} has the shape {}, and {} in place of {} was expected", i,
                               str(std::span<const std::int64_t>(results[i].shape)), d.str(), extent);
            if (!d.is_symbolic() || std::ranges::count(symbols, d.str()) == 0) continue;
            const auto [known, fresh] = counts_.try_emplace(d.str(), extent);
            if (!fresh && known->second != extent)
                return invalid("result {} has the shape {}, and another one {} in place of {}", i,
                               str(std::span<const std::int64_t>(results[i].shape)), known->second, extent);
        }
        held_[node.outputs[i]] = std::move(results[i]);
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

Status StagedRun::run_stage(const Stage& stage, Session& session) {
    return run_session(
        session, inputs_of(stage),
        [&](const std::vector<std::vector<std::int64_t>>& shapes) {
            std::vector<OutputView> outputs;
            for (std::size_t i = 0; i < shapes.size(); ++i) {
                Held& held = held_[stage.made[i]];
                value_or_throw(held.become(*exe_.buffers, graph_.value(stage.made[i]).type.dtype, shapes[i],
                                           options_.reuse_buffers));
                outputs.push_back({held.memory.data(), held.bytes()});
            }
            return outputs;
        },
        options_);
}

/// The caller's, for all outputs, whose shapes are known.
std::vector<OutputView> StagedRun::output_memory(const Session::MakeOutputs& make_outputs) {
    std::vector<std::vector<std::int64_t>> shapes;
    for (const auto& [name, id] : graph_.outputs) {
        const auto shape = value_or_throw(view(id)).shape;
        shapes.emplace_back(shape.begin(), shape.end());
    }
    auto outputs = make_outputs(shapes);
    if (outputs.size() != graph_.outputs.size())
        throw Exception(Code::invalid_argument, fmt::format("{} outputs given, the graph has {}",
                                                            outputs.size(), graph_.outputs.size()));
    return outputs;
}

Status StagedRun::run_last(const Stage& stage, Session& session, const Session::MakeOutputs& make_outputs) {
    std::vector<OutputView> outputs;
    HR_TRY(run_session(
        session, inputs_of(stage),
        [&](const std::vector<std::vector<std::int64_t>>& made) {
            for (std::size_t i = 0; i < made.size(); ++i) {
                held_[stage.made[i]].dtype = graph_.value(stage.made[i]).type.dtype;
                held_[stage.made[i]].shape = made[i];
            }
            outputs = output_memory(make_outputs);
            std::vector<OutputView> here;
            for (const ValueId id : stage.made) {
                const auto at =
                    std::ranges::find(graph_.outputs, id, &std::pair<std::string, ValueId>::second);
                const OutputView& output = outputs[static_cast<std::size_t>(at - graph_.outputs.begin())];
                here.push_back({output.data, output.bytes});
                held_[id].elsewhere = output.data;
            }
            return here;
        },
        options_));
    return copy_outputs(outputs);
}

/// Outputs that were made before the last stage, or that are one value with another.
Status StagedRun::copy_outputs(std::span<const OutputView> outputs) {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const auto& [name, id] = graph_.outputs[i];
        HR_ASSIGN(const ConstView found, view(id));
        const std::size_t bytes = bytes_of(found.dtype, found.elements());
        if (outputs[i].bytes != bytes)
            return invalid("output '{}': {} bytes of memory given, it needs {}", name, outputs[i].bytes,
                           bytes);
        if (outputs[i].data != found.data && bytes > 0) std::memmove(outputs[i].data, found.data, bytes);
        if (outputs[i].memory) outputs[i].memory->written_on_host();
    }
    return success();
}

Status StagedRun::run(const Session::MakeOutputs& make_outputs) {
    for (std::size_t s = 0; s < sessions_.stages.size(); ++s) {
        const Stage& stage = exe_.stages[s].stage;
        const bool is_last = s + 1 == sessions_.stages.size();
        const bool has_nodes = !exe_.stages[s].executable->graph.nodes.empty();
        for (const NodeId id : stage.before) HR_TRY(see_to(id));
        if (is_last && has_nodes) return run_last(stage, sessions_.stages[s], make_outputs);
        if (is_last) return copy_outputs(output_memory(make_outputs));
        if (has_nodes) HR_TRY(run_stage(stage, sessions_.stages[s]));
        for (const ValueId id : stage.released) held_.erase(id);
    }
    return success();
}

}  // namespace headrace
