#include "run/limited/limited_device.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>

#include "ggml-backend-impl.h"
#include "ggml-cpu.h"
#include "ggml-impl.h"

namespace headrace::testing {

struct LimitedDevice::State {
    std::string name;
    bool is_free = true;
    Limits limits;
    Counts counts;
    std::size_t bytes_in_use = 0;
    std::vector<std::string> violations;
    mutable std::mutex mutex;
    ggml_backend_reg reg{};
    ggml_backend_device device{};
    ggml_backend_buffer_type type{};

    bool takes(const ggml_tensor* tensor) const;
    bool supports(const ggml_tensor* op) const;
    void complain(const std::string& what, const ggml_tensor* tensor);
};

namespace {

using State = LimitedDevice::State;

constexpr std::size_t kAlignment = 256;
/// What blocks need beyond their bytes, as on devices that read them in large pieces.
constexpr std::size_t kBlockPadding = 512;

State& state_of(ggml_backend_dev_t device) { return *static_cast<State*>(device->context); }
State& state_of(ggml_backend_buffer_type_t type) { return *static_cast<State*>(type->context); }
State& state_of(ggml_backend_t backend) { return *static_cast<State*>(backend->context); }
State& state_of(ggml_backend_buffer_t buffer) { return state_of(buffer->buft); }

const char* name_of(ggml_backend_dev_t device) { return state_of(device).name.c_str(); }

bool is_view(ggml_op op) {
    return op == GGML_OP_NONE || op == GGML_OP_RESHAPE || op == GGML_OP_VIEW || op == GGML_OP_PERMUTE ||
           op == GGML_OP_TRANSPOSE;
}

/// Addresses that ggml calculates with, and the bytes that they stand for.
struct Memory {
    explicit Memory(std::size_t size)
        : bytes(size),
          base(static_cast<std::byte*>(
              mmap(nullptr, size + kAlignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
        if (base == MAP_FAILED) throw std::bad_alloc();
    }
    ~Memory() { munmap(base, bytes.size() + kAlignment); }
    std::byte* at(const void* address) {
        return bytes.data() + (static_cast<const std::byte*>(address) - base);
    }

    std::vector<std::byte> bytes;
    std::byte* base;
};

Memory& memory_of(ggml_backend_buffer_t buffer) { return *static_cast<Memory*>(buffer->context); }

// Buffers

void free_buffer(ggml_backend_buffer_t buffer) {
    State& state = state_of(buffer);
    const std::lock_guard lock(state.mutex);
    state.bytes_in_use -= buffer->size;
    delete &memory_of(buffer);
}

void* get_base(ggml_backend_buffer_t buffer) { return memory_of(buffer).base; }

ggml_status init_tensor(ggml_backend_buffer_t buffer, ggml_tensor* tensor) {
    State& state = state_of(buffer);
    const std::lock_guard lock(state.mutex);
    if (!state.takes(tensor)) state.complain("got memory", tensor);
    if (!tensor->view_src) {
        state.counts.largest_tensor = std::max(state.counts.largest_tensor, ggml_nbytes(tensor));
        if (reinterpret_cast<std::uintptr_t>(tensor->data) % kAlignment != 0)
            state.complain("is not aligned", tensor);
    }
    return GGML_STATUS_SUCCESS;
}

void set_tensor(ggml_backend_buffer_t buffer, ggml_tensor* tensor, const void* data, std::size_t offset,
                std::size_t size) {
    State& state = state_of(buffer);
    const std::lock_guard lock(state.mutex);
    if (state.limits.throws_in_upload) throw std::runtime_error("the driver lost the device");
    state.counts.uploaded_bytes += size;
    std::memcpy(memory_of(buffer).at(tensor->data) + offset, data, size);
}

void get_tensor(ggml_backend_buffer_t buffer, const ggml_tensor* tensor, void* data, std::size_t offset,
                std::size_t size) {
    State& state = state_of(buffer);
    const std::lock_guard lock(state.mutex);
    state.counts.read_bytes += size;
    std::memcpy(data, memory_of(buffer).at(tensor->data) + offset, size);
}

void memset_tensor(ggml_backend_buffer_t buffer, ggml_tensor* tensor, std::uint8_t value, std::size_t offset,
                   std::size_t size) {
    std::memset(memory_of(buffer).at(tensor->data) + offset, value, size);
}

void clear(ggml_backend_buffer_t buffer, std::uint8_t value) {
    std::ranges::fill(memory_of(buffer).bytes, std::byte{value});
}

constexpr ggml_backend_buffer_i kBuffer{.free_buffer = free_buffer,
                                        .get_base = get_base,
                                        .init_tensor = init_tensor,
                                        .memset_tensor = memset_tensor,
                                        .set_tensor = set_tensor,
                                        .get_tensor = get_tensor,
                                        .clear = clear};

ggml_backend_buffer_t alloc_buffer(ggml_backend_buffer_type_t type, std::size_t size) {
    State& state = state_of(type);
    const std::lock_guard lock(state.mutex);
    if (size > state.limits.buffer_bytes || state.bytes_in_use + size > state.limits.memory_bytes) {
        ++state.counts.failed_allocations;
        return nullptr;
    }
    state.bytes_in_use += size;
    ++state.counts.buffers;
    return ggml_backend_buffer_init(type, kBuffer, new Memory(size), size);
}

std::size_t get_alloc_size(ggml_backend_buffer_type_t, const ggml_tensor* tensor) {
    return ggml_nbytes(tensor) + (ggml_is_quantized(tensor->type) ? kBlockPadding : 0);
}

constexpr ggml_backend_buffer_type_i kBufferType{
    .get_name = [](ggml_backend_buffer_type_t type) { return state_of(type).name.c_str(); },
    .alloc_buffer = alloc_buffer,
    .get_alignment = [](ggml_backend_buffer_type_t) { return kAlignment; },
    .get_max_size = [](ggml_backend_buffer_type_t type) { return state_of(type).limits.buffer_bytes; },
    .get_alloc_size = get_alloc_size,
    .is_host = [](ggml_backend_buffer_type_t) { return false; }};

// Computation

/// The tensors of a graph with addresses that the CPU can use, for as long as this lives.
class Mapped {
public:
    Mapped(State& state, ggml_cgraph* graph) : state_(state) {
        for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
            ggml_tensor* node = ggml_graph_node(graph, i);
            if (is_view(node->op)) continue;  // a cut may begin with some of what is elsewhere
            map(node);
            for (ggml_tensor* source : node->src)
                if (source) map(source);
        }
    }
    ~Mapped() {
        for (const auto& [tensor, data] : addresses_) tensor->data = data;
    }
    bool is_complete() const { return is_complete_; }

private:
    void map(ggml_tensor* tensor) {
        if (!addresses_.try_emplace(tensor, tensor->data).second) return;
        if (!tensor->buffer || tensor->buffer->buft != &state_.type) {
            state_.complain("is computed with, but lies elsewhere", tensor);
            is_complete_ = false;
        } else if (tensor->buffer->size > 0) {
            tensor->data = memory_of(tensor->buffer).at(tensor->data);
        }
    }

    State& state_;
    std::map<ggml_tensor*, void*> addresses_;
    bool is_complete_ = true;
};

ggml_status compute_mapped(ggml_cgraph* graph) {
    ggml_cplan plan = ggml_graph_plan(graph, 1, nullptr);
    std::vector<std::uint8_t> work(plan.work_size);
    plan.work_data = work.data();
    return ggml_graph_compute(graph, &plan);
}

/// Node by node, as a device that holds the factors of products as f16, or gets some ops wrong.
ggml_status compute_inexactly(const Limits& limits, ggml_cgraph* graph) {
    constexpr float kRounding = 1 + 3e-4f;
    for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
        ggml_cgraph one = ggml_graph_view(graph, i, i + 1);
        if (const ggml_status status = compute_mapped(&one); status != GGML_STATUS_SUCCESS) return status;
        const ggml_tensor* node = ggml_graph_node(graph, i);
        const bool is_rounded = limits.rounds_products && node->op == GGML_OP_MUL_MAT &&
                                node->src[0]->type == GGML_TYPE_F32 && node->ne[1] >= limits.rounded_from &&
                                node->ne[1] <= limits.rounded_to;
        const bool is_wrong = limits.wrong_ops.contains(node->op) && node->type == GGML_TYPE_F32;
        auto* values = static_cast<float*>(node->data);
        for (std::int64_t k = 0; (is_rounded || is_wrong) && k < ggml_nelements(node); ++k)
            values[k] = (is_rounded ? values[k] * kRounding : values[k]) + (is_wrong ? 1 : 0);
    }
    return GGML_STATUS_SUCCESS;
}

ggml_status compute(ggml_backend_t backend, ggml_cgraph* graph) {
    State& state = state_of(backend);
    const std::lock_guard lock(state.mutex);
    if (state.limits.throws_in_compute) throw std::runtime_error("the driver lost the device");
    if (state.limits.compute_status != GGML_STATUS_SUCCESS) return state.limits.compute_status;
    ++state.counts.graphs;
    for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
        const ggml_tensor* node = ggml_graph_node(graph, i);
        if (is_view(node->op)) continue;
        ++state.counts.nodes;
        if (!state.supports(node)) state.complain("is computed", node);
    }
    const Mapped mapped(state, graph);
    if (!mapped.is_complete()) return GGML_STATUS_FAILED;
    const Limits& limits = state.limits;
    if (limits.rounds_products || !limits.wrong_ops.empty()) return compute_inexactly(limits, graph);
    return compute_mapped(graph);
}

constexpr ggml_backend_i kBackend{
    .get_name = [](ggml_backend_t backend) { return state_of(backend).name.c_str(); },
    .free = [](ggml_backend_t backend) { delete backend; },
    .graph_compute = compute};

// The device

void get_memory(ggml_backend_dev_t device, std::size_t* free, std::size_t* total) {
    const State& state = state_of(device);
    *total = std::min(state.limits.memory_bytes, std::size_t{1} << 40);
    *free = *total - std::min(*total, state.bytes_in_use);
}

void get_props(ggml_backend_dev_t device, ggml_backend_dev_props* props) {
    *props = {};
    props->name = props->description = name_of(device);
    props->type = GGML_BACKEND_DEVICE_TYPE_GPU;
    get_memory(device, &props->memory_free, &props->memory_total);
}

ggml_backend_t init_backend(ggml_backend_dev_t device, const char*) {
    static ggml_guid guid = {0x6c, 0x69, 0x6d, 0x69, 0x74, 0x65, 0x64};
    return new ggml_backend{.guid = &guid, .iface = kBackend, .device = device, .context = device->context};
}

constexpr ggml_backend_device_i kDevice{
    .get_name = name_of,
    .get_description = name_of,
    .get_memory = get_memory,
    .get_type = [](ggml_backend_dev_t) { return GGML_BACKEND_DEVICE_TYPE_GPU; },
    .get_props = get_props,
    .init_backend = init_backend,
    .get_buffer_type = [](ggml_backend_dev_t device) { return &state_of(device).type; },
    .supports_op = [](ggml_backend_dev_t device,
                      const ggml_tensor* op) { return state_of(device).supports(op); },
    .supports_buft = [](ggml_backend_dev_t device,
                        ggml_backend_buffer_type_t type) { return type == &state_of(device).type; }};

constexpr ggml_backend_reg_i kReg{
    .get_name = [](ggml_backend_reg_t reg) { return static_cast<State*>(reg->context)->name.c_str(); },
    .get_device_count = [](ggml_backend_reg_t) { return std::size_t{1}; },
    .get_device = [](ggml_backend_reg_t reg,
                     std::size_t) { return &static_cast<State*>(reg->context)->device; }};

State* new_state(std::size_t number) {
    auto* state = new State;  // ggml keeps devices for good
    state->name = fmt::format("Limited{}", number);
    state->reg = {.api_version = GGML_BACKEND_API_VERSION, .iface = kReg, .context = state};
    state->device = {.iface = kDevice, .reg = &state->reg, .context = state};
    state->type = {.iface = kBufferType, .device = &state->device, .context = state};
    ggml_backend_register(&state->reg);
    return state;
}

}  // namespace

bool State::takes(const ggml_tensor* tensor) const {
    return ggml_nbytes(tensor) <= limits.tensor_bytes && !limits.refused_types.contains(tensor->type);
}

bool State::supports(const ggml_tensor* op) const {
    for (const ggml_tensor* source : op->src)
        if (source && !takes(source)) return false;
    if (!takes(op) || limits.refused_ops.contains(op->op)) return false;
    if (op->op >= GGML_OP_MAP_CUSTOM1 && op->op <= GGML_OP_CUSTOM) return false;  // they run on the host
    return true;
}

void State::complain(const std::string& what, const ggml_tensor* tensor) {
    violations.push_back(fmt::format("a tensor of {} bytes ({}, {}) {}", ggml_nbytes(tensor),
                                     ggml_type_name(tensor->type), ggml_op_name(tensor->op), what));
}

LimitedDevice::LimitedDevice(Limits limits) {
    static std::mutex mutex;
    static std::vector<State*> states;
    const std::lock_guard lock(mutex);
    if (ggml_backend_dev_count() == 0) ggml_backend_load_all();
    // How a device computes is found out once: one that rounds is not used again.
    const auto found = std::ranges::find_if(states, [&](const State* s) {
        return s->is_free && !s->limits.rounds_products && !limits.rounds_products;
    });
    state_ = found != states.end() ? *found : states.emplace_back(new_state(states.size()));
    state_->is_free = false;
    state_->limits = std::move(limits);
    state_->violations.clear();
    reset_counts();
}

LimitedDevice::~LimitedDevice() { state_->is_free = true; }

std::string LimitedDevice::name() const { return state_->name; }
Limits& LimitedDevice::limits() { return state_->limits; }
std::vector<std::string> LimitedDevice::violations() const { return state_->violations; }
std::size_t LimitedDevice::bytes_in_use() const { return state_->bytes_in_use; }
LimitedDevice::Counts LimitedDevice::counts() const { return state_->counts; }
void LimitedDevice::reset_counts() { state_->counts = {}; }

}  // namespace headrace::testing
