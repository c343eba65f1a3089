#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <map>

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml.h"
#include "run/host_memory.h"
#include "run/instance.h"
#include "run/thread_choice.h"
#include "run/thread_pool.h"

namespace headrace {
namespace {

struct GallocrFree {
    void operator()(ggml_gallocr* g) const { ggml_gallocr_free(g); }
};
struct ThreadpoolFree {
    void operator()(ggml_threadpool* t) const { ggml_threadpool_free(t); }
};

/// Work below this is done by the calling thread: waking others costs as much.
constexpr double kSingleThreadUs = 20;

/// A tensor whose memory changes from run to run, and the views that must follow it.
struct Binding {
    ggml_tensor* tensor = nullptr;  ///< null: the output is copied from `source` instead
    ggml_tensor* source = nullptr;
    std::vector<ggml_tensor*> views;
    std::size_t alignment = 1;  ///< bytes of an element
    AlignedBuffer scratch;      ///< for callers whose memory is not aligned to the element

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

class CpuInstance final : public Instance {
public:
    CpuInstance(std::shared_ptr<const Plan> plan, LoweredGraph lowered)
        : Instance(std::move(plan), std::move(lowered)) {}

    Status prepare(StateBuffers& states);
    Status run(std::span<const InputView> inputs, std::span<const OutputView> outputs, int threads) override;

private:
    void choose_output_bindings();
    void collect_views();
    Status allocate();
    Status bind_input(Binding& binding, const InputView& view);
    Status bind_output(Binding& binding, const OutputView& view);
    void copy_outputs(std::span<const OutputView> outputs);
    Status compute(int threads);

    struct ComputePlan {
        ggml_cplan cplan;
        AlignedBuffer work;
    };
    std::unique_ptr<ggml_gallocr, GallocrFree> arena_;
    std::unique_ptr<ggml_threadpool, ThreadpoolFree> solo_;  ///< one thread: the caller's
    std::map<int, ComputePlan> compute_plans_;               ///< by number of threads
    std::vector<Binding> inputs_, outputs_;
    ThreadChoice choice_;
    bool small_ = false;
};

Status CpuInstance::prepare(StateBuffers& states) {
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
    HR_TRY(allocate());
    collect_views();
    small_ = plan_->estimated_us() < kSingleThreadUs;
    choice_ = ThreadChoice(plan_->estimated_us());
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

Status CpuInstance::allocate() {
    const int n = ggml_graph_n_nodes(lowered_.graph);
    stats_.ggml_nodes = n;
    if (n == 0) return success();
    for (int i = 0; i < n; ++i) {
        const ggml_tensor* t = ggml_graph_node(lowered_.graph, i);
        if (!t->view_src && !t->data) stats_.naive_bytes += ggml_nbytes(t);
    }
    ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    arena_.reset(ggml_gallocr_new(ggml_backend_dev_buffer_type(cpu)));
    if (!ggml_gallocr_alloc_graph(arena_.get(), lowered_.graph))
        return failure(Code::out_of_memory,
                       "cannot allocate the activations; without reuse they take {} bytes",
                       stats_.naive_bytes);
    stats_.arena_bytes = ggml_gallocr_get_buffer_size(arena_.get(), 0);
    return success();
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

Status ensure_scratch(Binding& binding, std::size_t bytes) {
    if (binding.scratch) return success();
    HR_ASSIGN(binding.scratch, AlignedBuffer::allocate(bytes, "an unaligned operand"));
    return success();
}

Status CpuInstance::bind_input(Binding& binding, const InputView& view) {
    const std::size_t bytes = ggml_nbytes(binding.tensor);
    if (bytes == 0) return success();
    if (is_aligned(view.data, binding.alignment)) {
        binding.bind(const_cast<void*>(view.data));
        ++stats_.inputs_bound;
        return success();
    }
    HR_TRY(ensure_scratch(binding, bytes));
    std::memcpy(binding.scratch.data(), view.data, bytes);
    binding.bind(binding.scratch.data());
    ++stats_.inputs_copied;
    return success();
}

Status CpuInstance::bind_output(Binding& binding, const OutputView& view) {
    if (!binding.tensor || ggml_nbytes(binding.tensor) == 0) return success();
    if (is_aligned(view.data, binding.alignment)) {
        binding.bind(view.data);
        ++stats_.outputs_bound;
        return success();
    }
    HR_TRY(ensure_scratch(binding, view.bytes));
    binding.bind(binding.scratch.data());
    return success();
}

void CpuInstance::copy_outputs(std::span<const OutputView> outputs) {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const ggml_tensor* from = outputs_[i].tensor ? outputs_[i].tensor : outputs_[i].source;
        if (from->data == outputs[i].data || outputs[i].bytes == 0) continue;
        std::memcpy(outputs[i].data, from->data, outputs[i].bytes);
        ++stats_.outputs_copied;
    }
}

Status CpuInstance::compute(int threads) {
    if (ggml_graph_n_nodes(lowered_.graph) == 0) return success();
    auto [it, fresh] = compute_plans_.try_emplace(threads);
    ComputePlan& plan = it->second;
    if (fresh) {
        plan.cplan = ggml_graph_plan(lowered_.graph, threads, nullptr);
        HR_ASSIGN(plan.work, AlignedBuffer::allocate(plan.cplan.work_size, "ggml's work area"));
        plan.cplan.work_data = reinterpret_cast<std::uint8_t*>(plan.work.data());
    }
    ggml_status status;
    if (threads == 1) {
        plan.cplan.threadpool = solo_.get();
        status = ggml_graph_compute(lowered_.graph, &plan.cplan);
    } else {
        const ThreadPoolLease lease(threads);
        plan.cplan.threadpool = lease.pool();
        status = ggml_graph_compute(lowered_.graph, &plan.cplan);
    }
    if (status != GGML_STATUS_SUCCESS)
        return failure(Code::backend_failure, "ggml's CPU backend failed: {}", ggml_status_to_string(status));
    return take_failures();
}

Status CpuInstance::run(std::span<const InputView> inputs, std::span<const OutputView> outputs, int threads) {
    stats_.inputs_bound = stats_.inputs_copied = stats_.outputs_bound = stats_.outputs_copied = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) HR_TRY(bind_input(inputs_[i], inputs[i]));
    for (std::size_t i = 0; i < outputs.size(); ++i) HR_TRY(bind_output(outputs_[i], outputs[i]));
    stats_.threads = small_ ? 1 : choice_.choose(threads);
    const auto start = std::chrono::steady_clock::now();
    HR_TRY(compute(stats_.threads));
    if (!small_)
        choice_.record(
            stats_.threads,
            std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
    copy_outputs(outputs);
    return success();
}

}  // namespace

Result<std::unique_ptr<Instance>> make_cpu_instance(std::shared_ptr<const Plan> plan, StateBuffers& states) {
    HR_ASSIGN(LoweredGraph lowered, lower(*plan));
    auto instance = std::make_unique<CpuInstance>(std::move(plan), std::move(lowered));
    HR_TRY(instance->prepare(states));
    return std::unique_ptr<Instance>(std::move(instance));
}

}  // namespace headrace
