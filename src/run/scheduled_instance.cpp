#include <algorithm>
#include <cstring>

#include "emit/emit.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml.h"
#include "remote/host.h"
#include "run/arena.h"
#include "run/device_call.h"
#include "run/device_operands.h"
#include "run/host_memory.h"
#include "run/instance.h"
#include "run/node_shares.h"
#include "run/node_watch.h"
#include "run/thread_pool.h"

namespace headrace {
namespace {

struct SchedFree {
    void operator()(ggml_backend_sched* s) const { ggml_backend_sched_free(s); }
};

class ScheduledInstance final : public Instance {
public:
    ScheduledInstance(std::shared_ptr<const Plan> plan, LoweredGraph lowered)
        : Instance(std::move(plan), std::move(lowered)) {}

    Status prepare(const States& states, const Device& device, DeviceConstants& constants);
    Status run(std::span<const InputView> inputs, std::span<const OutputView> outputs, int threads,
               const RunOptions& options) override;
    /// The scheduler keeps the activations' memory.
    std::size_t own_bytes() const override { return Instance::own_bytes() + stats_.arena_bytes; }
    bool is_lost() const override {
        return std::any_of(hosts_.begin(), hosts_.end(), [](const auto& host) { return host->is_lost(); });
    }

private:
    Status open(const Device& device, DeviceConstants& constants);
    Status place_constants(DeviceConstants& constants);
    Status check_hosts() const;
    std::string device_names() const;
    void count_activations();
    std::vector<ggml_backend*> backends_of_nodes();
    void choose_operands(std::span<ggml_backend* const> backends);
    void assign_backends(std::span<ggml_backend* const> backends);
    void assign_leaves();
    bool place_in(const Arena& arena);
    Status compute_graph();
    Status compute(bool profile);
    Status compute_on_device(int threads, bool profile);
    const Device& device() const { return placed_.front()->device; }
    Status place_operands(std::span<const InputView> inputs, std::span<const OutputView> outputs);
    void write_inputs(std::span<const InputView> inputs);
    Status read_output(std::size_t i, std::span<const InputView> inputs, const OutputView& output);

    std::vector<std::shared_ptr<DeviceConstants::Placed>> placed_;  // outlives what is in the devices' memory
    std::vector<std::shared_ptr<remote::Host>> hosts_;
    std::vector<Backend> devices_;
    Backend cpu_;
    std::vector<std::size_t> device_of_node_, device_of_constant_;  // where the plan wants a device
    BackendBuffer placeholder_;                                     // of operands, before the first run
    DeviceOperands operands_;
    bool operands_moved_ = false;  // since the run before
    SplitCopies split_copies_;
    std::vector<BackendBuffer> arenas_;  // of activations that ggml's allocator has no part in
    std::unique_ptr<ggml_backend_sched, SchedFree> sched_;
};

Status ScheduledInstance::open(const Device& device, DeviceConstants& constants) {
    std::vector<const Device*> wanted{&device};
    for (const Device& other : device.others) wanted.push_back(&other);
    for (const Device* one : wanted) {
        HR_ASSIGN(auto placed, constants.connect(*one));
        devices_.emplace_back(ggml_backend_dev_init(placed->device.handle, nullptr));
        if (!devices_.back())
            return failure(Code::backend_failure, "device '{}' could not be opened", one->name);
        if (placed->device.host) hosts_.push_back(placed->device.host);
        placed_.push_back(std::move(placed));
    }
    cpu_.reset(ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr));
    if (!cpu_) return failure(Code::backend_failure, "device 'cpu' could not be opened");
    return success();
}

Status ScheduledInstance::check_hosts() const {
    for (const auto& host : hosts_) HR_TRY(host->check());
    return success();
}

/// Weights go where they are first read; several hosts share the nodes so that their memory suffices.
Status ScheduledInstance::place_constants(DeviceConstants& constants) {
    const std::vector<std::size_t> readers = first_readers(lowered_);
    device_of_node_.assign(lowered_.node_ranges.size() + 1, 0);
    if (!hosts_.empty()) {
        std::vector<std::uint64_t> rooms;
        // A tenth is left to activations. Every instance takes the same rooms, and so the same places.
        for (const auto& placed : placed_) rooms.push_back(placed->free / 10 * 9);
        auto shares = share_nodes(first_read_bytes(lowered_, readers), rooms);
        if (!shares.ok()) return shares.error().within(device_names());
        device_of_node_ = std::move(shares).value();
        device_of_node_.push_back(0);  // of constants that no node reads
    }
    std::vector<DeviceConstants::Upload> uploads;
    for (std::size_t i = 0; i < lowered_.constants.size(); ++i) {
        const ConstantTensor& c = lowered_.constants[i];
        device_of_constant_.push_back(device_of_node_[readers[i]]);
        if (c.on_device) uploads.push_back({placed_[device_of_constant_[i]].get(), c.tensor, c.constant});
    }
    return constants.place(uploads);
}

std::string ScheduledInstance::device_names() const {
    std::string names;
    for (const auto& placed : placed_) names += (names.empty() ? "" : ",") + placed->device.name;
    return names;
}

void ScheduledInstance::count_activations() {
    stats_.ggml_nodes = ggml_graph_n_nodes(lowered_.graph);
    for (int i = 0; i < stats_.ggml_nodes; ++i) {
        const ggml_tensor* t = ggml_graph_node(lowered_.graph, i);
        if (t->view_src) continue;
        stats_.naive_bytes += ggml_nbytes(t);
        ++stats_.naive_buffers;
    }
}

void ScheduledInstance::assign_leaves() {
    const auto assign = [&](ggml_tensor* t, const Backend& backend) {
        ggml_backend_sched_set_tensor_backend(sched_.get(), t, backend.get());
    };
    for (std::size_t i = 0; i < lowered_.inputs.size(); ++i)
        assign(lowered_.inputs[i], operands_.inputs[i] ? devices_.front() : cpu_);
    for (std::size_t i = 0; i < lowered_.states.size(); ++i)
        assign(lowered_.states[i], is_on_device(i) ? devices_.front() : cpu_);
    for (std::size_t i = 0; i < lowered_.constants.size(); ++i) {
        const ConstantTensor& c = lowered_.constants[i];
        assign(c.tensor, c.on_device ? devices_[device_of_constant_[i]] : cpu_);
    }
}

/// The device was not asked about nodes that the plan adds to a lowering: where it refuses that, the node
/// runs on the CPU with ggml's own kernel.
std::vector<ggml_backend*> ScheduledInstance::backends_of_nodes() {
    std::vector<ggml_backend*> backends(static_cast<std::size_t>(ggml_graph_n_nodes(lowered_.graph)),
                                        cpu_.get());
    stats_.nodes.clear();
    for (std::size_t i = 0; i < plan_->nodes.size(); ++i) {
        const auto [first, last] = lowered_.node_ranges[i];
        const std::size_t device = device_of_node_[i];
        bool on_device = plan_->nodes[i].on_device;
        // To what writes a state, which lies there, nothing is added.
        for (int n = first; on_device && plan_->graph.nodes[i].op->is_pure() && n < last; ++n) {
            const ggml_tensor* t = ggml_graph_node(lowered_.graph, n);
            on_device = Emit::is_for_cpu(t) || ggml_backend_supports_op(devices_[device].get(), t);
        }
        for (int n = first; n < last; ++n)
            if (on_device && !Emit::is_for_cpu(ggml_graph_node(lowered_.graph, n)))
                backends[static_cast<std::size_t>(n)] = devices_[device].get();
        stats_.nodes.push_back({.device = on_device ? placed_[device]->device.name : "CPU"});
    }
    return backends;
}

/// Inputs and outputs lie with the device where one device of this machine computes all. With several
/// devices or hosts the scheduler copies them.
void ScheduledInstance::choose_operands(std::span<ggml_backend* const> backends) {
    operands_.inputs.resize(lowered_.inputs.size());
    operands_.outputs.resize(lowered_.outputs.size());
    if (!hosts_.empty() || devices_.size() > 1) return;
    operands_ = choose_device_operands(lowered_, plan_->graph, backends, devices_.front().get());
    placeholder_.reset(ggml_backend_buft_alloc_buffer(ggml_backend_dev_buffer_type(device().handle), 0));
    for (auto* operands : {&operands_.inputs, &operands_.outputs})
        for (const auto& operand : *operands)
            if (operand) operand->hold_place(placeholder_.get());
}

/// Our plan places every tensor; the scheduler only cuts the graph and moves data. Where it had to choose, it
/// would end the process over a tensor in a memory whose device refuses it.
void ScheduledInstance::assign_backends(std::span<ggml_backend* const> backends) {
    assign_leaves();
    for (std::size_t n = 0; n < backends.size(); ++n) {
        ggml_tensor* t = ggml_graph_node(lowered_.graph, static_cast<int>(n));
        ggml_backend_t chosen = backends[n];
        if (is_view(t)) chosen = ggml_backend_sched_get_tensor_backend(sched_.get(), t->view_src);
        ggml_backend_sched_set_tensor_backend(sched_.get(), t, chosen);
    }
}

/// False when the backend has no memory for it.
bool ScheduledInstance::place_in(const Arena& arena) {
    ggml_backend_buffer_type_t type = ggml_backend_get_default_buffer_type(arena.backend);
    const std::size_t first = arenas_.size();
    for (std::size_t begin = 0; begin < arena.bytes; begin += std::min(arena.chunk, arena.bytes - begin)) {
        arenas_.emplace_back(
            ggml_backend_buft_alloc_buffer(type, std::min(arena.chunk, arena.bytes - begin)));
        if (!arenas_.back()) return false;
        ggml_backend_buffer_set_usage(arenas_.back().get(), GGML_BACKEND_BUFFER_USAGE_COMPUTE);
        stats_.arena_bytes += ggml_backend_buffer_get_size(arenas_.back().get());
    }
    for (const auto& [tensor, offset] : arena.places) {
        ggml_backend_buffer_t buffer = arenas_[first + offset / arena.chunk].get();
        auto* base = static_cast<std::byte*>(ggml_backend_buffer_get_base(buffer));
        if (ggml_backend_tensor_alloc(buffer, tensor, base + offset % arena.chunk) != GGML_STATUS_SUCCESS)
            return false;
    }
    return true;
}

Status ScheduledInstance::prepare(const States& states, const Device& named, DeviceConstants& constants) {
    HR_TRY(open(named, constants));
    place_leaves(states);
    for (std::size_t i = 0; i < states.size(); ++i)
        if (is_on_device(i)) HR_TRY(states[i]->place_on(placed_.front()->device, lowered_.states[i]));
    HR_TRY(place_constants(constants));
    for (ggml_tensor* t : lowered_.outputs) {
        ggml_set_output(t);
        if (t->view_src && !t->view_src->data) ggml_set_output(t->view_src);
    }
    count_activations();
    const int n = stats_.ggml_nodes;
    std::vector<ggml_backend_t> backends;
    for (const Backend& device : devices_) backends.push_back(device.get());
    backends.push_back(cpu_.get());
    const std::size_t leaves = lowered_.inputs.size() + lowered_.states.size() + lowered_.constants.size();
    sched_.reset(ggml_backend_sched_new(backends.data(), nullptr, static_cast<int>(backends.size()),
                                        static_cast<std::size_t>(n) + leaves + 64, false, false));
    place_empty_tensors(lowered_);
    const std::vector<ggml_backend*> backends_of = backends_of_nodes();
    choose_operands(backends_of);
    assign_backends(backends_of);
    HR_ASSIGN(const std::vector<Arena> arenas, arenas_beside_ggml(lowered_, sched_.get()));
    if (!std::all_of(arenas.begin(), arenas.end(), [&](const Arena& arena) { return place_in(arena); }) ||
        (n > 0 && !ggml_backend_sched_alloc_graph(sched_.get(), lowered_.graph)))
        return failure(
            Code::out_of_memory,
            "device '{}' has no memory for the activations, which take {} bytes without reuse; {}; "
            "use smaller inputs, or the device 'cpu'",
            device_names(), stats_.naive_bytes, largest_result());
    stats_.splits = ggml_backend_sched_get_n_splits(sched_.get());
    split_copies_ = count_split_copies(lowered_);
    for (ggml_backend_t b : backends)
        stats_.arena_bytes += ggml_backend_sched_get_buffer_size(sched_.get(), b);
    return check_hosts();
}

/// Asked whether it wants to see a node: none, so that ggml's scheduler computes each split whole, but as a
/// graph without a number. ggml's CUDA backend replays what it has recorded of a numbered graph, with the
/// addresses that its tensors had then, and compares those of any other.
bool wants_no_node(ggml_tensor*, bool, void*) { return false; }

Status ScheduledInstance::compute_graph() {
    const std::string names = device_names();
    return device_call(names, [&]() -> Status {
        const ggml_status status = ggml_backend_sched_graph_compute(sched_.get(), lowered_.graph);
        if (status == GGML_STATUS_SUCCESS) return success();
        const Code code = status == GGML_STATUS_ALLOC_FAILED ? Code::out_of_memory : Code::backend_failure;
        return failure(code, "device '{}' failed: {}", names, ggml_status_to_string(status));
    });
}

Status ScheduledInstance::compute(bool profile) {
    if (stats_.ggml_nodes == 0) return success();  // ggml's backends want at least one node
    if (!profile) {
        if (operands_moved_) ggml_backend_sched_set_eval_callback(sched_.get(), &wants_no_node, nullptr);
        const Status status = compute_graph();
        ggml_backend_sched_set_eval_callback(sched_.get(), nullptr, nullptr);
        return status;
    }
    NodeWatch watch{.nodes = &stats_.nodes};
    for (std::size_t i = 0; i < lowered_.node_ranges.size(); ++i) {
        stats_.nodes[i].start_us = stats_.nodes[i].duration_us = 0;
        for (int n = lowered_.node_ranges[i].first; n < lowered_.node_ranges[i].second; ++n)
            watch.ir_nodes[ggml_graph_node(lowered_.graph, n)] = i;
    }
    ggml_backend_sched_set_eval_callback(sched_.get(), &NodeWatch::after_node, &watch);
    const Status status = compute_graph();
    ggml_backend_sched_set_eval_callback(sched_.get(), nullptr, nullptr);
    return status;
}

Status ScheduledInstance::compute_on_device(int threads, bool profile) {
    const ThreadPoolLease lease(threads);
    ggml_backend_cpu_set_n_threads(cpu_.get(), threads);
    ggml_backend_cpu_set_threadpool(cpu_.get(), lease.pool());
    const Status status = compute(profile);
    ggml_backend_cpu_set_threadpool(cpu_.get(), nullptr);  // the lease ends: another run may replace the pool
    return status;
}

Status ScheduledInstance::run(std::span<const InputView> inputs, std::span<const OutputView> outputs,
                              int threads, const RunOptions& options) {
    HR_TRY(check_may_run(options));
    std::vector<std::unique_lock<std::mutex>> turns;
    std::vector<remote::Host*> order;  // one for all, so that two runs never wait for each other
    for (const auto& host : hosts_) order.push_back(host.get());
    std::sort(order.begin(), order.end());
    for (remote::Host* host : order) turns.emplace_back(host->turn());
    stats_.inputs_bound = stats_.inputs_copied = stats_.outputs_bound = stats_.outputs_copied = 0;
    stats_.copies = split_copies_.count;
    stats_.copied_bytes = split_copies_.bytes;
    stats_.threads = threads;
    HR_TRY(bring_states(&device()));
    HR_TRY(place_operands(inputs, outputs));
    HR_TRY(device_call(device_names(), [&] {
        write_inputs(inputs);
        return success();
    }));
    const Status computed = compute_on_device(threads, options.profile),
                 thrown = take_failures();  // of a run that failed, too, or the next one would report it
    note_written_states(&device());
    HR_TRY(computed);
    HR_TRY(thrown);
    HR_TRY(device_call(device_names(), [&]() -> Status {
        for (std::size_t i = 0; i < outputs.size(); ++i) HR_TRY(read_output(i, inputs, outputs[i]));
        return success();
    }));
    return check_hosts();
}

/// Gives what lies on the device its memory for this run: tensors theirs, which get their newest content.
Status ScheduledInstance::place_operands(std::span<const InputView> inputs,
                                         std::span<const OutputView> outputs) {
    operands_moved_ = false;
    const auto place = [&](DeviceOperand& operand, TensorMemory* memory) -> Status {
        const void* before = operand.tensor()->data;
        HR_TRY(memory ? operand.use(*memory, device()) : operand.use_own(device()));
        operands_moved_ |= operand.tensor()->data != before;
        return success();
    };
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        TensorMemory* memory = inputs[i].memory;
        DeviceOperand* operand = operands_.inputs[i].get();
        if (operand) HR_TRY(place(*operand, memory));
        if (!memory) continue;
        HR_ASSIGN(const bool copied, operand ? memory->bring_to(device()) : memory->bring_to_host());
        if (copied) note_copy(memory->bytes());
        if (operand) ++(copied ? stats_.inputs_copied : stats_.inputs_bound);
    }
    for (std::size_t i = 0; i < outputs.size(); ++i)
        if (DeviceOperand* operand = operands_.outputs[i].get()) HR_TRY(place(*operand, outputs[i].memory));
    return success();
}

/// Inputs are copied from the host's memory, which stays as it is until the device has finished the run. An
/// input that no node reads has no memory on any device.
void ScheduledInstance::write_inputs(std::span<const InputView> inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        ggml_tensor* t = lowered_.inputs[i];
        if (!t->buffer || (operands_.inputs[i] && inputs[i].memory)) continue;
        const std::size_t bytes = ggml_nbytes(t);
        if (operands_.inputs[i])
            ggml_backend_tensor_set_async(devices_.front().get(), t, inputs[i].data, 0, bytes);
        else
            ggml_backend_tensor_set(t, inputs[i].data, 0, bytes);
        ++stats_.inputs_copied;
        note_copy(bytes);
    }
}

Status ScheduledInstance::read_output(std::size_t i, std::span<const InputView> inputs,
                                      const OutputView& output) {
    if (output.bytes == 0) return success();
    if (output.memory && operands_.outputs[i]) {
        output.memory->written_on(device());
        ++stats_.outputs_bound;
        return success();
    }
    ++stats_.outputs_copied;
    note_copy(output.bytes);
    const auto handed = std::ranges::find(lowered_.inputs, lowered_.outputs[i]);
    if (handed != lowered_.inputs.end())  // an input handed through may have no memory of its own
        std::memcpy(output.data, inputs[static_cast<std::size_t>(handed - lowered_.inputs.begin())].data,
                    output.bytes);
    else
        ggml_backend_tensor_get(lowered_.outputs[i], output.data, 0, output.bytes);
    if (output.memory) output.memory->written_on_host();
    return success();
}

}  // namespace

Result<std::unique_ptr<Instance>> make_scheduled_instance(std::shared_ptr<const Plan> plan,
                                                          const States& states, const Device& device,
                                                          DeviceConstants& constants) {
    HR_ASSIGN(LoweredGraph lowered, lower(*plan));
    auto instance = std::make_unique<ScheduledInstance>(std::move(plan), std::move(lowered));
    HR_TRY(device_call(device.name, [&] { return instance->prepare(states, device, constants); }));
    return std::unique_ptr<Instance>(std::move(instance));
}

}  // namespace headrace
