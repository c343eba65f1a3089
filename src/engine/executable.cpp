#include "engine/executable.h"

#include <algorithm>

#include "base/cache_folder.h"
#include "base/log.h"
#include "engine/precision.h"
#include "engine/quantize.h"
#include "ir/graph_file.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "ops/catalog.h"
#include "passes/pipeline.h"
#include "run/thread_pool.h"

namespace headrace {
namespace {

std::vector<PassStats> to_stats(const std::vector<PassReport>& reports) {
    std::vector<PassStats> stats;
    for (const PassReport& r : reports) stats.push_back({r.name, r.ran, r.ms, r.counts});
    return stats;
}

std::size_t mapped_bytes(const Graph& graph) {
    std::size_t total = 0;
    for (const Value& v : graph.values)
        if (v.kind == ValueKind::constant && v.constant->mapped) total += v.constant->bytes.size();
    return total;
}

void use_packed_cache(Executable::Impl& impl) {
    if (!impl.options.packed_kernels || !impl.device.is_cpu) return;
    const auto folder =
        chosen_cache_folder(impl.options.packed_cache, "HEADRACE_PACKED_CACHE", "off", "packed");
    if (!folder.ok())
        HR_LOG(warn, {}, "packed weights are not kept: {}", folder.error().message);
    else if (!folder.value().empty())
        impl.packed.use_cache(impl.graph, folder.value(), impl.threads());
}

/// Null where there is none; without a home folder nobody has stored any.
std::shared_ptr<const Tuning> stored_tuning(const CompileOptions& options) {
    const auto folder = tuning_folder(options);
    if (!folder.ok() || folder.value().empty()) return nullptr;
    const std::string path = tuning_file(folder.value());
    auto tuning = read_tuning(path);
    if (!tuning.ok()) {
        HR_LOG(warn, {}, "'{}' is not used: {}; headrace bench --tune writes it anew", path,
               tuning.error().message);
        return nullptr;
    }
    return std::make_shared<const Tuning>(std::move(tuning).value());
}

}  // namespace

TensorInfo describe(const std::string& name, const TensorType& type) {
    TensorInfo info{.name = name, .dtype = type.dtype};
    for (const Dim& d : type.shape) {
        info.shape.push_back(d.is_symbolic() ? -1 : d.size());
        info.dimension_names.push_back(d.is_symbolic() ? d.name() : "");
    }
    return info;
}

PlanOptions Executable::Impl::plan_options() const {
    return {.devices = device.handles(),
            .arithmetic = arithmetic_for(device, options.precision),
            .device_room = device_room,
            // A host may be lost, and its memory with it.
            .states_on_device = !device.is_cpu && !device.host,
            .packed_kernels = options.packed_kernels,
            .native_ops = options.native_ops,
            .low_memory = options.memory == MemoryUse::low,
            .tuning = tuning.get(),
            .threads = threads()};
}

/// Makes a plan of this executable that of other numbers. Says which nodes these have changed.
Result<std::vector<bool>> Executable::Impl::change(Plan& plan, SymbolBindings bindings) {
    if (!uses_) uses_.emplace(graph);
    auto nodes = uses_->changed_nodes(plan.bindings, bindings);
    HR_TRY(specialize_changes(graph, bindings, plan.graph, nodes,
                              uses_->changed_conditions(plan.bindings, bindings)));
    HR_TRY(replan(plan, plan_options(), packed, nodes));
    plan.bindings = std::move(bindings);
    packed.keep();
    ++stats.plans;
    return nodes;
}

Result<std::shared_ptr<const Plan>> Executable::Impl::plan_for(const ShapeKey& shapes) {
    const std::lock_guard lock(mutex_);
    if (const auto* plan = plans_.find(shapes)) return *plan;
    HR_ASSIGN(SymbolBindings bindings, bind_symbols(graph, shapes));
    std::shared_ptr<Plan> plan;
    if (latest_) {
        plan = std::make_shared<Plan>(*latest_);
        HR_TRY(change(*plan, std::move(bindings)));
    } else {
        HR_ASSIGN(Graph concrete, specialize(graph, bindings));
        HR_ASSIGN(Plan made, make_plan(std::move(concrete), plan_options(), packed));
        made.bindings = std::move(bindings);
        packed.keep();
        ++stats.plans;
        plan = std::make_shared<Plan>(std::move(made));
    }
    latest_ = plan;
    const std::size_t bytes = plan->own_bytes();
    return plans_.insert(shapes, std::move(plan), bytes);
}

Result<Executable::Impl::ChangedPlan> Executable::Impl::changed_plan(std::shared_ptr<const Plan> from,
                                                                     const ShapeKey& shapes) {
    const std::lock_guard lock(mutex_);
    HR_ASSIGN(SymbolBindings bindings, bind_symbols(graph, shapes));
    // A plan that only the caller holds is changed in place: it was not made as a constant.
    auto plan = from.use_count() == 1 ? std::const_pointer_cast<Plan>(from) : std::make_shared<Plan>(*from);
    from.reset();
    HR_ASSIGN(auto nodes, change(*plan, std::move(bindings)));
    return ChangedPlan{std::move(plan), std::move(nodes)};
}

int Executable::Impl::threads() const {
    return options.threads > 0 ? usable_threads(options.threads) : default_threads();
}

Result<std::string> tuning_folder(const CompileOptions& options) {
    return chosen_cache_folder(options.tuning, "HEADRACE_TUNING", "on", "tuned");
}

namespace {

/// Each body is an executable of its own, whose passes run here.
Status compile_bodies(Executable::Impl& impl) {
    CompileOptions options = impl.options;
    options.buffers = impl.buffers;
    for (std::size_t i = 0; i < impl.graph.nodes.size(); ++i) {
        const Node& node = impl.graph.nodes[i];
        for (const GraphPtr& body : bodies(node)) {
            auto compiled = compile_graph(*body, options, impl.tuning);
            if (!compiled.ok()) return compiled.error().within(fmt::format("{}: its body", node.title()));
            impl.bodies[static_cast<NodeId>(i)].push_back(std::move(compiled).value());
        }
    }
    return success();
}

/// What a graph after all passes needs to run.
Status prepare(Executable::Impl& impl) {
    HR_TRY(compile_bodies(impl));
    HR_ASSIGN(auto stages, split_stages(impl.graph));
    for (Stage& stage : stages) {
        auto part = std::make_shared<Executable::Impl>(impl.options);
        part->device = impl.device;
        part->device_room = impl.device_room;
        part->buffers = impl.buffers;
        part->tuning = impl.tuning;
        part->graph = std::move(stage.graph);
        use_packed_cache(*part);
        impl.stages.push_back({std::move(stage), std::move(part)});
    }
    if (!impl.stages.empty()) return success();
    use_packed_cache(impl);
    if (!impl.graph.is_concrete()) return success();
    ShapeKey shapes;  // plan now, so that packing and its errors belong to compile
    for (ValueId id : impl.graph.inputs) shapes.push_back(impl.graph.value(id).type.sizes());
    auto plan = impl.plan_for(shapes);
    return plan.ok() ? success() : Status(plan.error());
}

}  // namespace

Result<std::shared_ptr<Executable::Impl>> compile_graph(Graph graph, const CompileOptions& options,
                                                        std::shared_ptr<const Tuning> tuning) {
    if (options.threads < 0)
        return invalid("threads is {}; it must be 0 (the default) or more", options.threads);
    HR_TRY(verify(graph));
    auto impl = std::make_shared<Executable::Impl>(options);
    HR_ASSIGN(impl->device, find_device(options.device, std::chrono::milliseconds(options.host_timeout_ms)));
    impl->stats.nodes_before = static_cast<std::int64_t>(graph.nodes.size());
    PassOptions passes;
    passes.disabled.insert(options.disabled_passes.begin(), options.disabled_passes.end());
    impl->device_room = room_for_constants(impl->device);
    passes.context.runs_on_cpu = impl->device.is_cpu;
    passes.context.uses_packed_kernels = impl->device.is_cpu && options.packed_kernels;
    passes.context.low_memory = options.memory == MemoryUse::low;
    passes.context.threads = impl->threads();
    impl->stats.is_fast = is_faster(impl->device, options);
    passes.context.round_to_bf16 = impl->stats.is_fast && passes.context.uses_packed_kernels;
    passes.context.weights = block_format(options.weights);
    passes.context.round_activations = options.round_activations;
    passes.verify = passes.verify || options.verify_passes;
    HR_ASSIGN(const auto reports, run_passes(graph, passes));
    impl->stats.passes = to_stats(reports);
    impl->stats.nodes_after = static_cast<std::int64_t>(graph.nodes.size());
    impl->stats.constant_bytes = graph.constant_bytes();
    impl->stats.mapped_bytes = mapped_bytes(graph);
    impl->graph = std::move(graph);
    impl->buffers->reset();
    if (impl->device.is_cpu) impl->tuning = tuning ? std::move(tuning) : stored_tuning(options);
    HR_TRY(prepare(*impl));
    return impl;
}

std::vector<TensorInfo> Executable::inputs() const {
    std::vector<TensorInfo> list;
    for (ValueId id : impl_->graph.inputs)
        list.push_back(describe(impl_->graph.value(id).name, impl_->graph.value(id).type));
    return list;
}

std::vector<TensorInfo> Executable::outputs() const {
    std::vector<TensorInfo> list;
    for (const auto& [name, id] : impl_->graph.outputs)
        list.push_back(describe(name, impl_->graph.value(id).type));
    return list;
}

std::vector<TensorInfo> Executable::states() const {
    std::vector<TensorInfo> list;
    for (ValueId id : impl_->graph.states)
        list.push_back(describe(impl_->graph.value(id).name, impl_->graph.value(id).type));
    return list;
}

/// Adds what a stage or a body has packed and planned for itself.
static void add_own(CompileStats& total, const CompileStats& part) {
    total.packed_bytes += part.packed_bytes;
    total.packed_mapped_bytes += part.packed_mapped_bytes;
    total.transformed_bytes += part.transformed_bytes;
    total.plans += part.plans;
    total.cached_plans += part.cached_plans;
}

CompileStats Executable::stats() const {
    const std::lock_guard lock(impl_->mutex_);
    CompileStats stats = impl_->stats;
    stats.packed_bytes = impl_->packed.bytes();
    stats.packed_mapped_bytes = impl_->packed.mapped_bytes();
    stats.transformed_bytes = impl_->packed.grown_bytes();
    std::size_t copied = impl_->packed.aligned_bytes();
    for (const auto& [stage, part] : impl_->stages) copied += part->packed.aligned_bytes();
    stats.mapped_bytes -= std::min(stats.mapped_bytes, copied);
    stats.cached_plans = static_cast<std::int64_t>(impl_->plans_.size());
    for (const auto& [stage, part] : impl_->stages) add_own(stats, Executable(part).stats());
    for (const auto& [node, parts] : impl_->bodies)
        for (const auto& part : parts) {
            const CompileStats own = Executable(part).stats();
            stats.constant_bytes += own.constant_bytes;
            stats.mapped_bytes += own.mapped_bytes;
            add_own(stats, own);
        }
    return stats;
}

BufferPool& Executable::buffers() const { return *impl_->buffers; }

const Graph& Executable::graph() const { return impl_->graph; }

Executable compile(const Graph& graph, const CompileOptions& options) {
    return Executable(value_or_throw(compile_graph(graph, options)));
}

std::shared_ptr<const Graph> load_graph(const std::string& path) {
    return std::make_shared<const Graph>(value_or_throw(read_graph(path, find_op)));
}

void save_graph(const Graph& graph, const std::string& path) { value_or_throw(write_graph(graph, path)); }

std::string print_graph(const Graph& graph) { return print(graph); }

std::vector<DeviceInfo> devices() { return list_devices(); }

void warm_up() { warm_up_cpu(); }

void set_num_threads(int threads) {
    if (threads < 1)
        throw Exception(Code::invalid_argument, fmt::format("set_num_threads({}): at least 1", threads));
    set_default_threads(threads);
}

int num_threads() { return default_threads(); }

}  // namespace headrace
