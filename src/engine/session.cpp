#include <algorithm>
#include <cstring>
#include <deque>

#include "base/byte_lru.h"
#include "engine/executable.h"
#include "engine/staged_run.h"
#include "run/instance.h"
#include "run/thread_pool.h"

namespace headrace {

namespace {

void reset_state(const Value& state, TensorMemory& memory) {
    if (state.constant)
        std::memcpy(memory.host(), state.constant->bytes.data(), memory.bytes());
    else
        std::memset(memory.host(), 0, memory.bytes());
    memory.written_on_host();
}

bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) {
    const auto x = reinterpret_cast<std::uintptr_t>(a), y = reinterpret_cast<std::uintptr_t>(b);
    return x < y + b_bytes && y < x + a_bytes;
}

std::size_t input_bytes(const InputView& input) {
    return bytes_of(input.dtype, ConstView{input.dtype, input.shape, nullptr}.elements());
}

/// Where an output is computed whose memory an input has, too.
struct Detour {
    std::size_t output;
    PooledBuffer memory;
};

/// What stages that ran one after the other took together.
void add(RunStats& total, const RunStats& next) {
    total.nodes.insert(total.nodes.end(), next.nodes.begin(), next.nodes.end());
    total.ggml_nodes += next.ggml_nodes;
    total.splits += next.splits;
    total.threads = std::max(total.threads, next.threads);
    total.arena_bytes = std::max(total.arena_bytes, next.arena_bytes);
    total.naive_buffers += next.naive_buffers;
    total.naive_bytes += next.naive_bytes;
    total.inputs_bound += next.inputs_bound;
    total.inputs_copied += next.inputs_copied;
    total.outputs_bound += next.outputs_bound;
    total.outputs_copied += next.outputs_copied;
    total.copies += next.copies;
    total.copied_bytes += next.copied_bytes;
}

}  // namespace

/// An instance, and whether its shapes are among those that come back.
struct KeptInstance {
    std::unique_ptr<Instance> instance;
    bool comes_back = false;
    PoolCharge charge = {};  ///< of what it keeps between runs
};

/// Activations and states of one stream of runs. Instances are kept per shape key, the latest first.
struct Session::Impl {
    explicit Impl(std::shared_ptr<Executable::Impl> executable)
        : exe(std::move(executable)), instances(exe->options.cache_bytes) {}

    std::shared_ptr<Executable::Impl> exe;
    States states;
    ByteLru<ShapeKey, KeptInstance> instances;
    std::deque<ShapeKey> left_behind;  ///< whose instances became those of the next shapes, the last ones
    StageSessions parts;               ///< none where the executable has no stages
    std::int64_t iterations = 0;       ///< of loops, in the last run
    bool states_are_lost = false;
    std::int64_t detoured = 0;  ///< outputs of the last run that were made elsewhere, and copied
    std::size_t detoured_bytes = 0;
    ShapeKey key;  ///< reused from run to run, so that a run allocates nothing

    Status allocate_states(std::span<const Session* const> sharing);
    std::shared_ptr<TensorMemory> state_like(const Value& state) const;
    void reset_states();
    Result<Instance*> instance_for(const ShapeKey& shapes);
    Result<std::unique_ptr<Instance>> adapted(const ShapeKey& shapes);
    Status check_inputs(std::span<const InputView> inputs) const;
    Status check_outputs(const Graph& graph, std::span<const OutputView> outputs) const;
    Result<std::vector<Detour>> detours(std::span<const InputView> inputs,
                                        std::span<const OutputView> outputs, bool reuse_buffers) const;
    Status run_instance(Instance& instance, std::span<const InputView> inputs,
                        std::span<const OutputView> outputs, const RunOptions& options);
    Status run_planned(Instance& instance, std::span<const InputView> inputs,
                       std::span<const OutputView> outputs, const RunOptions& options);
    Status check_given(std::span<const InputView> inputs) const;
    Status run(std::span<const InputView> inputs, std::span<const OutputView> outputs,
               const RunOptions& options);
    Status run(std::span<const InputView> inputs, const MakeOutputs& make_outputs, const RunOptions& options);
    Result<std::size_t> find_state(const std::string& name, std::size_t bytes) const;
};

std::shared_ptr<TensorMemory> Session::Impl::state_like(const Value& state) const {
    for (std::size_t i = 0; i < states.size(); ++i) {
        const Value& own = exe->graph.value(exe->graph.states[i]);
        if (own.name == state.name && own.type == state.type) return states[i];
    }
    return nullptr;
}

Status Session::Impl::allocate_states(std::span<const Session* const> sharing) {
    for (ValueId id : exe->graph.states) {
        const Value& state = exe->graph.value(id);
        std::shared_ptr<TensorMemory> memory;
        for (std::size_t i = 0; !memory && i < sharing.size(); ++i)
            memory = sharing[i]->impl_->state_like(state);
        if (!memory) {
            HR_ASSIGN(memory, TensorMemory::make(*exe->buffers, state.type.bytes(),
                                                 fmt::format("state '{}'", state.name)));
            reset_state(state, *memory);
        }
        states.push_back(std::move(memory));
    }
    return success();
}

void Session::Impl::reset_states() {
    for (std::size_t i = 0; i < states.size(); ++i)
        reset_state(exe->graph.value(exe->graph.states[i]), *states[i]);
    states_are_lost = false;
}

Result<Instance*> Session::Impl::instance_for(const ShapeKey& shapes) {
    const auto* newest = instances.newest();
    // All are on one device. A host that is back gets them anew.
    if (newest && newest->instance->is_lost()) instances.clear();
    if (auto* found = instances.find(shapes)) {
        found->comes_back |= found != newest;
        return found->instance.get();
    }
    const bool comes_back = std::find(left_behind.begin(), left_behind.end(), shapes) != left_behind.end();
    std::unique_ptr<Instance> instance;
    if (!comes_back) {
        HR_ASSIGN(instance, adapted(shapes));
    }
    if (!instance) {
        HR_ASSIGN(auto plan, exe->plan_for(shapes));
        HR_ASSIGN(instance, exe->device.is_cpu ? make_cpu_instance(std::move(plan), states, *exe->buffers)
                                               : make_scheduled_instance(std::move(plan), states, exe->device,
                                                                         exe->device_constants));
    }
    const std::size_t bytes = instance->own_bytes();
    constexpr std::string_view kPurpose = "what a session keeps of its graph";
    Result<PoolCharge> charge = PoolCharge::take(*exe->buffers, bytes, kPurpose);
    if (!charge.ok()) {
        instances.clear();
        charge = PoolCharge::take(*exe->buffers, bytes, kPurpose);
    }
    if (!charge.ok()) return charge.error();
    return instances.insert(shapes, {std::move(instance), comes_back, std::move(charge).value()}, bytes)
        .instance.get();
}

/// The last run's instance for other shapes, as a cache that grows needs it, or one of its changed plan; null
/// where its own come back.
Result<std::unique_ptr<Instance>> Session::Impl::adapted(const ShapeKey& shapes) {
    constexpr std::size_t kRemembered = 8;
    const auto* newest = instances.newest();
    if (!exe->device.is_cpu || !newest || newest->comes_back) return std::unique_ptr<Instance>();
    auto [key, last] = instances.take_newest();
    left_behind.push_back(std::move(key));
    if (left_behind.size() > kRemembered) left_behind.pop_front();
    HR_ASSIGN(auto change, exe->changed_plan(last.instance->take_plan(), shapes));
    HR_ASSIGN(const bool is_adapted, last.instance->adapt(change.plan, change.nodes));
    if (is_adapted) return std::move(last.instance);
    last.instance.reset();  // its memory first
    return make_cpu_instance(std::move(change.plan), states, *exe->buffers);
}

Status Session::Impl::check_inputs(std::span<const InputView> inputs) const {
    const Graph& graph = exe->graph;
    if (inputs.size() != graph.inputs.size())
        return invalid("{} inputs given, the graph has {}", inputs.size(), graph.inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const Value& declared = graph.value(graph.inputs[i]);
        if (inputs[i].dtype != declared.type.dtype)
            return invalid("input '{}' is {}, the graph declares {}", declared.name, name_of(inputs[i].dtype),
                           declared.type.str());
        if (inputs[i].memory && inputs[i].memory->bytes() != input_bytes(inputs[i]))
            return invalid("input '{}' is a tensor of {} bytes, its shape takes {}", declared.name,
                           inputs[i].memory->bytes(), input_bytes(inputs[i]));
        const auto& shape = inputs[i].shape;
        const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
        if (!inputs[i].data && !empty) return invalid("input '{}' has no data", declared.name);
    }
    return success();
}

Status Session::Impl::check_outputs(const Graph& graph, std::span<const OutputView> outputs) const {
    if (outputs.size() != graph.outputs.size())
        return invalid("{} outputs given, the graph has {}", outputs.size(), graph.outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const auto& [name, id] = graph.outputs[i];
        const std::size_t needed = graph.value(id).type.bytes();
        if (outputs[i].bytes != needed)
            return invalid("output '{}': {} bytes of memory given, {} needs {}", name, outputs[i].bytes,
                           graph.value(id).type.str(), needed);
        if (outputs[i].memory && outputs[i].memory->bytes() != needed)
            return invalid("output '{}' is a tensor of {} bytes, {} needs {}", name,
                           outputs[i].memory->bytes(), graph.value(id).type.str(), needed);
        if (!outputs[i].data && needed > 0) return invalid("output '{}' has no memory", name);
    }
    return success();
}

/// Outputs are written while inputs are still read, so those that lie where an input does are made elsewhere.
Result<std::vector<Detour>> Session::Impl::detours(std::span<const InputView> inputs,
                                                   std::span<const OutputView> outputs,
                                                   bool reuse_buffers) const {
    std::vector<Detour> made;
    for (std::size_t o = 0; o < outputs.size(); ++o) {
        void* const data = outputs[o].data;
        const std::size_t bytes = outputs[o].bytes;
        for (std::size_t p = 0; p < o; ++p)
            if (overlap(data, bytes, outputs[p].data, outputs[p].bytes))
                return invalid("output '{}' overlaps the memory of output '{}'", exe->graph.outputs[o].first,
                               exe->graph.outputs[p].first);
        const bool is_input = std::any_of(inputs.begin(), inputs.end(), [&](const InputView& input) {
            return overlap(data, bytes, input.data, input_bytes(input));
        });
        if (!is_input) continue;
        HR_ASSIGN(auto memory, PooledBuffer::take(*exe->buffers, bytes, "an output in the memory of an input",
                                                  reuse_buffers));
        made.push_back({o, std::move(memory)});
    }
    return made;
}

Status Session::Impl::run_instance(Instance& instance, std::span<const InputView> inputs,
                                   std::span<const OutputView> outputs, const RunOptions& options) {
    HR_ASSIGN(auto elsewhere, detours(inputs, outputs, options.reuse_buffers));
    detoured = static_cast<std::int64_t>(elsewhere.size());
    detoured_bytes = 0;
    const int threads = options.threads > 0 ? usable_threads(options.threads) : exe->threads();
    if (elsewhere.empty()) return instance.run(inputs, outputs, threads, options);
    std::vector<OutputView> views(outputs.begin(), outputs.end());
    for (Detour& d : elsewhere) views[d.output] = {d.memory.data(), outputs[d.output].bytes};
    HR_TRY(instance.run(inputs, views, threads, options));
    for (const Detour& d : elsewhere) {
        const OutputView& output = outputs[d.output];
        std::memcpy(output.data, d.memory.data(), output.bytes);
        detoured_bytes += output.bytes;
        if (output.memory) output.memory->written_on_host();
    }
    return success();
}

Status Session::Impl::check_given(std::span<const InputView> inputs) const {
    HR_TRY(check_inputs(inputs));
    if (states_are_lost)
        return failure(
            Code::invalid_state,
            "the states were spoiled when device '{}' was lost in a run; reset_states() begins anew",
            exe->options.device);
    return success();
}

Status Session::Impl::run(std::span<const InputView> inputs, const MakeOutputs& make_outputs,
                          const RunOptions& options) {
    HR_TRY(check_given(inputs));
    if (!parts.stages.empty()) {
        StagedRun run(*exe, inputs, states, parts, options);
        const Status status = run.run(make_outputs);
        iterations = run.iterations();
        return status;
    }
    key.resize(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i)
        key[i].assign(inputs[i].shape.begin(), inputs[i].shape.end());
    HR_ASSIGN(Instance* const instance, instance_for(key));
    const Graph& graph = instance->plan().graph;
    std::vector<std::vector<std::int64_t>> shapes;
    for (const auto& [name, id] : graph.outputs) shapes.push_back(graph.value(id).type.sizes());
    return run_planned(*instance, inputs, make_outputs(shapes), options);
}

Status Session::Impl::run(std::span<const InputView> inputs, std::span<const OutputView> outputs,
                          const RunOptions& options) {
    if (!parts.stages.empty())
        return run(
            inputs, [&](const auto&) { return std::vector<OutputView>(outputs.begin(), outputs.end()); },
            options);
    HR_TRY(check_given(inputs));
    key.resize(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i)
        key[i].assign(inputs[i].shape.begin(), inputs[i].shape.end());
    HR_ASSIGN(Instance* const instance, instance_for(key));
    return run_planned(*instance, inputs, outputs, options);
}

Status Session::Impl::run_planned(Instance& instance, std::span<const InputView> inputs,
                                  std::span<const OutputView> outputs, const RunOptions& options) {
    HR_TRY(check_outputs(instance.plan().graph, outputs));
    const Status status = run_instance(instance, inputs, outputs, options);
    states_are_lost = !status.ok() && instance.is_lost() && !states.empty();
    return status;
}

Result<std::size_t> Session::Impl::find_state(const std::string& name, std::size_t bytes) const {
    for (std::size_t i = 0; i < states.size(); ++i) {
        const Value& state = exe->graph.value(exe->graph.states[i]);
        if (state.name != name) continue;
        if (bytes != states[i]->bytes())
            return invalid("state '{}': {} bytes given, {} has {}", name, bytes, state.type.str(),
                           states[i]->bytes());
        return i;
    }
    std::string known;
    for (ValueId id : exe->graph.states)
        known.append(known.empty() ? "" : ", ").append(exe->graph.value(id).name);
    return invalid("the graph has no state '{}'; it has: {}", name, known.empty() ? "none" : known);
}

Session::Session(const Executable& executable, std::span<const Session* const> sharing)
    : impl_(std::make_unique<Impl>(executable.impl())) {
    value_or_throw(impl_->allocate_states(sharing));
    const Session* const own = this;
    for (const auto& [stage, part] : executable.impl()->stages)
        impl_->parts.stages.emplace_back(Executable(part), std::span(&own, 1));
    for (const auto& [node, bodies] : executable.impl()->bodies)
        for (const auto& body : bodies) impl_->parts.bodies[node].emplace_back(Executable(body));
}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

std::vector<std::vector<std::int64_t>> Session::output_shapes(
    std::span<const std::vector<std::int64_t>> input_shapes) {
    if (input_shapes.size() != impl_->exe->graph.inputs.size())
        throw Exception(Code::invalid_argument,
                        fmt::format("{} input shapes given, the graph has {} inputs", input_shapes.size(),
                                    impl_->exe->graph.inputs.size()));
    if (!impl_->parts.stages.empty())
        throw Exception(
            Code::invalid_argument,
            "the shapes of the outputs depend on what a run counts: give run() a function that makes "
            "the outputs' memory when they are known");
    Instance* instance = value_or_throw(impl_->instance_for({input_shapes.begin(), input_shapes.end()}));
    std::vector<std::vector<std::int64_t>> shapes;
    for (const auto& [name, id] : instance->plan().graph.outputs)
        shapes.push_back(instance->plan().graph.value(id).type.sizes());
    return shapes;
}

void Session::run(std::span<const InputView> inputs, std::span<const OutputView> outputs,
                  const RunOptions& options) {
    value_or_throw(impl_->run(inputs, outputs, options));
}

void Session::run(std::span<const InputView> inputs, const MakeOutputs& make_outputs,
                  const RunOptions& options) {
    value_or_throw(impl_->run(inputs, make_outputs, options));
}

void Session::read_state(const std::string& name, void* data, std::size_t bytes) const {
    const std::size_t i = value_or_throw(impl_->find_state(name, bytes));
    value_or_throw(impl_->states[i]->read(data));
}

void Session::write_state(const std::string& name, const void* data, std::size_t bytes) {
    const std::size_t i = value_or_throw(impl_->find_state(name, bytes));
    value_or_throw(impl_->states[i]->write(data));
}

void Session::reset_states() {
    impl_->reset_states();
    for (auto& [node, bodies] : impl_->parts.bodies)
        for (Session& body : bodies) body.reset_states();
}

std::int64_t Session::iterations() const { return impl_->iterations; }

RunStats Session::stats() const {
    if (const auto& stages = impl_->parts.stages; !stages.empty()) {
        RunStats total = stages.front().stats();
        for (std::size_t i = 1; i < stages.size(); ++i) add(total, stages[i].stats());
        total.iterations = impl_->iterations;
        return total;
    }
    const auto* newest = impl_->instances.newest();
    if (!newest) return {};
    const Instance& instance = *newest->instance;
    RunStats stats = instance.stats();
    const std::int64_t detoured = std::min(impl_->detoured, stats.outputs_bound);
    stats.outputs_bound -= detoured;
    stats.outputs_copied += detoured;
    stats.copies += impl_->detoured;
    stats.copied_bytes += impl_->detoured_bytes;
    const Plan& plan = instance.plan();
    stats.nodes.resize(plan.nodes.size(), {.device = "CPU"});
    for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
        stats.nodes[i].title = plan.graph.nodes[i].title();
        stats.nodes[i].label = plan.graph.nodes[i].label;
        stats.nodes[i].implementation = name_of(plan.nodes[i]);
        stats.nodes[i].is_tuned = plan.nodes[i].is_tuned;
        stats.nodes[i].flops = plan.nodes[i].cost.flops;
        stats.nodes[i].bytes = plan.nodes[i].cost.bytes;
    }
    return stats;
}

}  // namespace headrace
