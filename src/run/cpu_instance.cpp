#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>

#include "base/cpu_count.h"
#include "ggml-cpu.h"
#include "ggml.h"
#include "run/activations.h"
#include "run/host_memory.h"
#include "run/instance.h"
#include "run/node_timer.h"
#include "run/thread_choice.h"
#include "run/thread_pool.h"

namespace headrace {
namespace {

struct ThreadpoolFree {
    void operator()(ggml_threadpool* t) const { ggml_threadpool_free(t); }
};

/// Work below this is done by the calling thread: waking others costs as much.
constexpr double kSingleThreadUs = 20;

/// The same of an average node, since threads meet after every one.
constexpr double kSingleThreadNodeUs = 1;

/// The first run of less work than this, too: threads that have to be made, or that wait for a core, last
/// longer.
constexpr double kColdRunUs = 5000;

/// How long the threads of others hold a CPU at least, as Linux shares it.
constexpr double kTimeSliceUs = 3000;

/// Activations up to this size stay with the instance: fetching them for each run would cost more time than
/// the memory is worth.
constexpr std::size_t kKeptBytes = std::size_t{64} << 10;

/// A little more than is needed: shapes that are nearly alike, such as a cache's from step to step, then take
/// the same buffer from the pool, whose pages are there already.
std::size_t pooled_size(std::size_t bytes) {
    if (bytes <= kKeptBytes) return bytes;
    const std::size_t step = std::bit_floor(bytes) / 8;
    return (bytes + step - 1) / step * step;
}

/// A tensor whose memory changes from run to run, and the views that must follow it.
struct Binding {
    ggml_tensor* tensor = nullptr;  ///< null: the output is copied from `source` instead
    ggml_tensor* source = nullptr;
    std::vector<ggml_tensor*> views;
    std::size_t alignment = 1;  ///< bytes of an element
    PooledBuffer scratch;       ///< for callers whose memory is not aligned to the element

    void bind(void* data) {
        if (tensor->data == data) return;
        tensor->data = data;
        for (ggml_tensor* view : views) view->data = static_cast<char*>(data) + view->view_offs;
    }
};

std::size_t element_bytes(const Value& value) {
    return std::max<std::size_t>(1, bytes_of(value.type.dtype, 1));
}

bool is_aligned(const void* data, std::size_t alignment) {
    return reinterpret_cast<std::uintptr_t>(data) % alignment == 0;
}

/// ggml's question after each node, on the thread that runs.
bool wants_stop(void* stop) { return static_cast<RunStop*>(stop)->asked(); }

class CpuInstance final : public Instance {
public:
    CpuInstance(std::shared_ptr<const Plan> plan, LoweredGraph lowered, const BufferPool& buffers)
        : Instance(std::move(plan), std::move(lowered)), buffers_(buffers) {}

    Status prepare(const States& states);
    Result<bool> adapt(std::shared_ptr<const Plan> plan, const std::vector<bool>& changed) override;
    Status run(std::span<const InputView> inputs, std::span<const OutputView> outputs, int threads,
               const RunOptions& options) override;
    std::size_t own_bytes() const override { return Instance::own_bytes() + activations_.own_bytes(); }

private:
    void choose_output_bindings();
    void collect_views();
    bool are_slices_longer() const;
    void estimate();
    void offer_stop();
    void measure();
    Status named(Status placed) const;
    ggml_cplan& compute_plan(int threads);
    Status take_memory(const ggml_cplan& plan, bool reuse);
    Status bind_input(Binding& binding, const InputView& view);
    Status bind_output(Binding& binding, const OutputView& view);
    void copy_outputs(std::span<const OutputView> outputs);
    Status compute(int threads, const RunOptions& options);

    BufferPool buffers_;
    Activations activations_;
    PooledBuffer memory_;               ///< the arena, then ggml's work area; empty between runs when large
    const std::byte* arena_ = nullptr;  ///< where the tensors were placed last
    std::unique_ptr<ggml_threadpool, ThreadpoolFree> solo_;  ///< one thread: the caller's
    std::map<int, ggml_cplan> compute_plans_;                ///< by number of threads
    std::vector<Binding> inputs_, outputs_;
    std::optional<NodeTimer> timer_;
    ThreadChoice choice_;
    double estimated_us_ = 0;
    bool small_ = false;
    RunStop stop_;
};

Status CpuInstance::prepare(const States& states) {
    place_leaves(states);
    const Graph& graph = plan_->graph;
    for (std::size_t i = 0; i < lowered_.inputs.size(); ++i) {
        place_on_host(lowered_.inputs[i], nullptr);
        inputs_.push_back(
            {.tensor = lowered_.inputs[i], .alignment = element_bytes(graph.value(graph.inputs[i]))});
    }
    choose_output_bindings();
    for (std::size_t i = 0; i < outputs_.size(); ++i)
        outputs_[i].alignment = element_bytes(graph.value(graph.outputs[i].second));
    measure();
    offer_stop();
    HR_TRY(named(activations_.place(lowered_)));
    stats_.arena_bytes = activations_.bytes();
    collect_views();
    estimate();
    if (estimated_us_ < kColdRunUs) choice_.start_alone();
    ggml_threadpool_params params = ggml_threadpool_params_default(1);
    solo_.reset(ggml_threadpool_new(&params));
    return success();
}

/// An output that a node computes into memory of its own is computed into the caller's memory instead. Views,
/// leaves and a second name for the same value are copied after the run.
void CpuInstance::choose_output_bindings() {
    std::vector<ggml_tensor*> bound;
    for (ggml_tensor* t : lowered_.outputs) {
        const bool owns_memory = t->op != GGML_OP_NONE && !t->view_src && !t->data;
        if (owns_memory && std::find(bound.begin(), bound.end(), t) == bound.end()) {
            place_on_host(t, nullptr);
            bound.push_back(t);
            outputs_.push_back({.tensor = t});
        } else {
            outputs_.push_back({.source = t});
            ggml_tensor* root = t->view_src ? t->view_src : t;
            if (!root->data) ggml_set_output(root);
        }
    }
}

/// What the activations would take without sharing memory.
void CpuInstance::measure() {
    stats_.ggml_nodes = ggml_graph_n_nodes(lowered_.graph);
    for (int i = 0; i < stats_.ggml_nodes; ++i) {
        const ggml_tensor* t = ggml_graph_node(lowered_.graph, i);
        if (t->view_src || t->data) continue;
        stats_.naive_bytes += ggml_nbytes(t);
        ++stats_.naive_buffers;
    }
}

void CpuInstance::offer_stop() {
    for (const auto& node : lowered_.custom_nodes) node->set_stop(&stop_);
}

/// Whether threads that lose a CPU to another process would wait for longer, one time slice a node, than the
/// whole run takes on one thread.
bool CpuInstance::are_slices_longer() const {
    return kTimeSliceUs * static_cast<double>(plan_->nodes.size()) > estimated_us_;
}

/// What was learned of a run's time, and of whether others hold the cores, goes on with other shapes.
void CpuInstance::estimate() {
    const double before = estimated_us_;
    estimated_us_ = plan_->estimated_us();
    small_ = estimated_us_ < kSingleThreadUs ||
             estimated_us_ < kSingleThreadNodeUs * static_cast<double>(plan_->nodes.size());
    if (before > 0 && estimated_us_ > 0)
        choice_.scale(estimated_us_ / before);
    else
        choice_ = ThreadChoice(
            estimated_us_, are_slices_longer() ? +[](int wanted) { return are_cpus_taken(wanted); }
                                               : +[](int) { return are_cpus_taken(1); });
}

Result<bool> CpuInstance::adapt(std::shared_ptr<const Plan> plan, const std::vector<bool>& changed) {
    if (!relower(lowered_, *plan, changed)) return false;
    plan_ = std::move(plan);
    offer_stop();
    estimate();
    compute_plans_.clear();
    timer_.reset();
    stats_.nodes.clear();
    for (std::vector<Binding>* bindings : {&inputs_, &outputs_})
        for (Binding& b : *bindings) {
            b.scratch.release();
            if (b.tensor) place_on_host(b.tensor, nullptr);  // so that its views follow in the next run
        }
    HR_TRY(named(activations_.place_again(lowered_)));
    stats_.arena_bytes = activations_.bytes();
    arena_ = nullptr;
    return true;
}

void CpuInstance::collect_views() {
    std::map<const ggml_tensor*, Binding*> roots;
    for (Binding& b : inputs_) roots[b.tensor] = &b;
    for (Binding& b : outputs_)
        if (b.tensor) roots[b.tensor] = &b;
    for (int i = 0; i < ggml_graph_n_nodes(lowered_.graph); ++i) {
        ggml_tensor* t = ggml_graph_node(lowered_.graph, i);
        if (auto it = roots.find(t->view_src); t->view_src && it != roots.end())
            it->second->views.push_back(t);
    }
}

Status ensure_scratch(Binding& binding, std::size_t bytes, const BufferPool& buffers) {
    if (binding.scratch) return success();
    HR_ASSIGN(binding.scratch, PooledBuffer::take(buffers, bytes, "an unaligned operand"));
    return success();
}

Status CpuInstance::bind_input(Binding& binding, const InputView& view) {
    const std::size_t bytes = ggml_nbytes(binding.tensor);
    if (bytes == 0) return success();
    if (view.memory) {
        HR_ASSIGN(const bool copied, view.memory->bring_to_host());
        if (copied) note_copy(bytes);
    }
    if (is_aligned(view.data, binding.alignment)) {
        binding.bind(const_cast<void*>(view.data));
        ++stats_.inputs_bound;
        return success();
    }
    HR_TRY(ensure_scratch(binding, bytes, buffers_));
    std::memcpy(binding.scratch.data(), view.data, bytes);
    binding.bind(binding.scratch.data());
    ++stats_.inputs_copied;
    note_copy(bytes);
    return success();
}

Status CpuInstance::bind_output(Binding& binding, const OutputView& view) {
    if (!binding.tensor || ggml_nbytes(binding.tensor) == 0) return success();
    if (is_aligned(view.data, binding.alignment)) {
        binding.bind(view.data);
        ++stats_.outputs_bound;
        return success();
    }
    HR_TRY(ensure_scratch(binding, view.bytes, buffers_));
    binding.bind(binding.scratch.data());
    return success();
}

void CpuInstance::copy_outputs(std::span<const OutputView> outputs) {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const ggml_tensor* from = outputs_[i].tensor ? outputs_[i].tensor : outputs_[i].source;
        if (from->data == outputs[i].data || outputs[i].bytes == 0) continue;
        std::memcpy(outputs[i].data, from->data, outputs[i].bytes);
        ++stats_.outputs_copied;
        note_copy(outputs[i].bytes);
    }
    for (const OutputView& output : outputs)
        if (output.memory) output.memory->written_on_host();
}

/// An error about memory for the activations says which of them takes most.
Status CpuInstance::named(Status placed) const {
    if (placed.ok() || placed.error().code != Code::out_of_memory) return placed;
    const Error& error = placed.error();
    return Error{error.code, fmt::format("{}; {}", error.message, largest_result()), error.parameter};
}

ggml_cplan& CpuInstance::compute_plan(int threads) {
    const auto [it, fresh] = compute_plans_.try_emplace(threads);
    if (fresh) it->second = ggml_graph_plan(lowered_.graph, threads, nullptr);
    return it->second;
}

Status CpuInstance::take_memory(const ggml_cplan& plan, bool reuse) {
    const std::size_t bytes = pooled_size(stats_.arena_bytes + plan.work_size);
    if (!memory_ || memory_.bytes() != bytes || !reuse) {
        memory_.release();
        Result<PooledBuffer> taken = PooledBuffer::take(buffers_, bytes, "the activations", reuse);
        if (!taken.ok()) return named(taken.error());
        memory_ = std::move(taken).value();
    }
    if (memory_.data() == arena_) return success();
    arena_ = memory_.data();
    activations_.move_to(memory_.data());
    return success();
}

Status CpuInstance::compute(int threads, const RunOptions& options) {
    HR_TRY(check_may_run(options));
    if (ggml_graph_n_nodes(lowered_.graph) == 0) return success();
    ggml_cplan& plan = compute_plan(threads);
    HR_TRY(take_memory(plan, options.reuse_buffers));
    plan.work_data = reinterpret_cast<std::uint8_t*>(memory_.data() + stats_.arena_bytes);
    stop_.begin(options.should_stop ? &options.should_stop : nullptr);
    plan.abort_callback = options.should_stop ? &wants_stop : nullptr;
    plan.abort_callback_data = &stop_;
    if (options.profile && !timer_) timer_.emplace(lowered_);
    const auto compute_on = [&](ggml_threadpool* pool) {
        plan.threadpool = pool;
        return options.profile
                   ? static_cast<ggml_status>(timer_->compute(threads, pool, plan.work_data, stats_.nodes))
                   : ggml_graph_compute(lowered_.graph, &plan);
    };
    const ggml_status status =
        threads == 1 ? compute_on(solo_.get()) : compute_on(ThreadPoolLease(threads).pool());
    const Status thrown = take_failures();  // of a stopped run, too, or the next one would report it
    if (status == GGML_STATUS_ABORTED || stop_.is_stopped()) return run_was_stopped();
    if (status != GGML_STATUS_SUCCESS)
        return failure(Code::backend_failure, "ggml's CPU backend failed: {}", ggml_status_to_string(status));
    return thrown;
}

Status CpuInstance::run(std::span<const InputView> inputs, std::span<const OutputView> outputs, int threads,
                        const RunOptions& options) {
    using Clock = std::chrono::steady_clock;
    stats_.inputs_bound = stats_.inputs_copied = stats_.outputs_bound = stats_.outputs_copied = 0;
    stats_.copies = 0;
    stats_.copied_bytes = 0;
    HR_TRY(bring_states(nullptr));
    for (std::size_t i = 0; i < inputs.size(); ++i) HR_TRY(bind_input(inputs_[i], inputs[i]));
    for (std::size_t i = 0; i < outputs.size(); ++i) HR_TRY(bind_output(outputs_[i], outputs[i]));
    stats_.threads = small_ ? 1 : choice_.choose(threads);
    const auto start = small_ ? Clock::time_point() : Clock::now();
    const Status computed = compute(stats_.threads, options);
    note_written_states(nullptr);
    HR_TRY(computed);
    if (!small_)
        choice_.record(stats_.threads,
                       std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    copy_outputs(outputs);
    if (memory_.bytes() > kKeptBytes || !options.reuse_buffers) memory_.release();
    return success();
}

}  // namespace

Result<std::unique_ptr<Instance>> make_cpu_instance(std::shared_ptr<const Plan> plan, const States& states,
                                                    const BufferPool& buffers) {
    HR_ASSIGN(LoweredGraph lowered, lower(*plan));
    auto instance = std::make_unique<CpuInstance>(std::move(plan), std::move(lowered), buffers);
    HR_TRY(instance->prepare(states));
    return std::unique_ptr<Instance>(std::move(instance));
}

}  // namespace headrace
